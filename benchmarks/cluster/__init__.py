"""What scripts/bench-cluster.sh measures, a module a section of its page.

Each has TITLE, OVER_HOSTS (whether it needs network namespaces and UCX), `measure(bench)`, which keeps points, and
`table(bench, points)`, which tells them.
"""
