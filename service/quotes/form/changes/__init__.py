"""Charts of an answer under other loads, other numbers of devices and other assumptions."""
