// Version of the service that the types describe. Written by `make client-sources`.

export const VERSION = '0.1.0';
