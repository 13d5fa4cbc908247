#!/bin/bash
cat > /app/average.py << 'PROGRAM'
import sys

with open(sys.argv[1]) as lines:
    numbers = [float(line) for line in lines if line.strip()]
print(f"{sum(numbers) / len(numbers):.2f}")
PROGRAM
