"""The shapes of questions and answers, and the only place where the two meet planning values."""
