#!/usr/bin/env python3
"""Write amplification of greedy garbage collection under uniform random overwrites, in the limit of many blocks.

  scripts/models/mean_field.py --pages-per-block 1152 --blocks 472.5 --data-blocks 371.1

The model shares no code with frit. A block that becomes full has b valid pages of U in all, and each write makes one of
the U pages invalid. In the steady state, as many blocks pass from i to i - 1 valid pages, for each write, as become
full. So there are in proportion 1 / i blocks with i valid pages, down to v, where greedy garbage collection takes them:

    T / U * (b - v) / b = H(b) - H(v)

T is the number of pages in blocks that are neither free nor open, and H are harmonic numbers. Between two whole v, the
victims are a mixture, and H is interpolated. A block yields b - v pages, so the write amplification is b / (b - v). Compare
Desnoyers, "Analytic Modeling of SSD Write Performance" (SYSTOR 2012), and Van Houdt (SIGMETRICS 2013).

With --choices D, garbage collection takes the block with the fewest valid pages of D that are drawn at random (Van Houdt).
If a share m(i) of the blocks has i valid pages, a victim has j with the probability p(j) = S(j)^D - S(j + 1)^D, where
S(j) is the share of blocks with j and more; blocks without an invalid page are no victims. The shares change until each
write makes as many blocks of each kind as it removes.
"""

import argparse


def write_amplification(pages_per_block, blocks, data_blocks):
    b, ratio = pages_per_block, blocks / data_blocks
    harmonic = [0.0]
    for i in range(1, b + 1):
        harmonic.append(harmonic[-1] + 1 / i)

    def excess(v):
        whole = min(int(v), b - 1)
        h = harmonic[whole] + (v - whole) * (harmonic[whole + 1] - harmonic[whole])
        return harmonic[b] - h - ratio * (b - v) / b

    low, high = 0.0, b * (1 - 1e-9)
    if excess(low) < 0:
        return 1.0
    for _ in range(200):
        middle = (low + high) / 2
        # Fewer valid pages mean that blocks live longer, so there would be more of them.
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return b / (b - low)


def write_amplification_of_choices(pages_per_block, blocks, data_blocks, choices):
    b, mean = pages_per_block, pages_per_block * data_blocks / blocks
    shares = [0.0] * (b + 2)
    shares[int(mean)] += 1 - mean % 1
    shares[int(mean) + 1] += mean % 1
    # No share changes by more than itself in a step.
    step = 0.5 / max(choices, 5)
    while True:
        above, victims = 0.0, [0.0] * (b + 1)
        for j in range(b, -1, -1):
            victims[j] = (above + shares[j]) ** choices - above**choices
            above += shares[j]
        victims[b] = 0.0
        found = sum(victims)
        victims = [p / found for p in victims]
        collections = 1 / (b - sum(j * p for j, p in enumerate(victims)))
        valid = sum(i * m for i, m in enumerate(shares))
        made = [(i + 1) * shares[i + 1] / valid for i in range(b)] + [collections]
        change = [made[i] - i * shares[i] / valid - victims[i] * collections for i in range(b + 1)]
        shares = [max(m + step * c, 0.0) for m, c in zip(shares, change)] + [0.0]
        if max(map(abs, change)) < 1e-7:
            return b * collections


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pages-per-block", type=int, required=True)
    parser.add_argument("--blocks", type=float, required=True, help="blocks that are neither free nor open, T / b")
    parser.add_argument("--data-blocks", type=float, required=True, help="pages of the volume, in blocks, U / b")
    parser.add_argument("--choices", type=int, metavar="D", help="the best of D blocks that are drawn; without it, of all")
    args = parser.parse_args()
    drive = args.pages_per_block, args.blocks, args.data_blocks
    result = write_amplification_of_choices(*drive, args.choices) if args.choices else write_amplification(*drive)
    print(f"{result:.4f}")


if __name__ == "__main__":
    main()
