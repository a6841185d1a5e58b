"""Times of commands of the HFSL prototype's media, for the models beside this file.

The latencies are those of the paper (Li et al., J. Syst. Archit. 2016, Table 7), and the division of a NAND page's time
into cells and bus is that of docs/design/engine.md. A command of PCM takes the time of its size: linear between the
points, below 128 bytes on the line to the origin, and at least the time of 16 bytes.

A unit (a chip of NAND, a channel of PCM) executes its commands in order. A program crosses the bus of its channel
first, a read last. A channel is granted in the order of the requests for it.
"""

PCM = {
    "read": [(128, 12800), (256, 24600), (512, 45900)],  # bytes, ns
    "write": [(128, 20700), (256, 45900), (512, 93500)],
}
FLOOR_BYTES = 16
NAND_CELLS, NAND_BUS = {"read": 62301, "program": 200001}, 13199  # ns; a page of 2 KB


def pcm_ns(op, size):
    """Returns the time of a command of at most 512 bytes, in whole nanoseconds."""
    size, low = max(size, FLOOR_BYTES), (0, 0)
    for high in PCM[op]:
        if size <= high[0]:
            return low[1] + (size - low[0]) * (high[1] - low[1]) // (high[0] - low[0])
        low = high
    raise ValueError(f"{size} bytes are more than a sub-page")


class Commands:
    """The commands of a request on idle media. A command is known by its number."""

    def __init__(self, nand_channels, nand_units):
        self.nand_channels, self.nand_units = nand_channels, nand_units
        self.queues = {}  # unit -> commands: number, operation, time of its cells, channel, numbers to wait for
        self.count = 0

    def add(self, unit, op, cells, channel, after):
        self.queues.setdefault(unit, []).append((self.count, op, cells, channel, after))
        self.count += 1
        return self.count - 1

    def pcm(self, slot, op, size, after=()):
        """Slots alternate between the two channels of PCM, whose times include the transfer."""
        return self.add(("PCM", slot % 2), op, pcm_ns(op, size), None, after)

    def nand(self, page, op, after=()):
        """Pages are striped over the chips, and chips over the channels."""
        unit = page % self.nand_units
        return self.add(("NAND", unit), op, NAND_CELLS[op], unit % self.nand_channels, after)

    def duration(self):
        """Executes the commands, and returns the time of the last end, in nanoseconds."""
        ends, idle, free = {}, dict.fromkeys(self.queues, 0), {}
        while len(ends) < self.count:
            asks = []
            for unit, queue in self.queues.items():
                if not queue or any(a not in ends for a in queue[0][4]):
                    continue
                number, op, cells, channel, after = queue[0]
                start = max([idle[unit], *(ends[a] for a in after)])
                # Without a bus the end is known. It is taken first, since others may wait for it.
                ask = -1 if channel is None else start + cells * (op == "read")
                asks.append((ask, number, unit, start))
            ask, number, unit, start = min(asks)
            _, op, cells, channel, _ = self.queues[unit].pop(0)
            if channel is None:
                end = start + cells
            else:
                crossed = free[channel] = max(ask, free.get(channel, 0)) + NAND_BUS
                end = crossed + cells * (op == "program")
            ends[number] = idle[unit] = end
        self.queues, self.count = {}, 0
        return max(ends.values(), default=0)
