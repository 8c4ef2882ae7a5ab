"""What the benchmarks share: a server, a sink, clocks, tables, and the machine they ran on."""
