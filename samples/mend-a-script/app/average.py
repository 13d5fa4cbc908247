import sys

total = 0
count = 1
with open(sys.argv[1]) as numbers:
    for line in numbers:
        total += float(line)
        count += 1
print(f"{total / count:.2f}")
