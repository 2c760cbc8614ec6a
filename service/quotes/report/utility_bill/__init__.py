"""What will it draw, emit and cost at the meter?"""
