"""What scripts/bench found, as Markdown: a table a row, the goals, the change since another run."""

import pathlib
import platform

from rows import BEST, FLOOR, FLOORS, LARDER

# kind of row: what is compared, and the columns: title, name of the figure, format.
COST = ("CPU µs/request", "cpu", "{:.1f}")
REST = [("requests/s", "rate", "{:,.0f}"), ("p99 ms", "p99", "{:.1f}"),
        ("core busy", "core", "{:.0%}"), ("resident MiB", "resident", "{:.0f}"),
        ("requests to origin", "origin", "{:.0%}")]
COLUMNS = {kind: [COST] + REST for kind in ("hit", "miss", "store")}
COLUMNS["tunnel"] = [
    ("CPU ms/GiB", "cpu", "{:.0f}"), ("GiB/s", "rate", "{:.2f}"), ("core busy", "core", "{:.0%}"),
    ("resident MiB", "resident", "{:.0f}")]
COLUMNS["latency"] = [
    ("p99 µs", "p99", "{:.0f}"), ("p50 µs", "p50", "{:.0f}"), ("p99.9 µs", "p999", "{:.0f}"),
    ("requests/s", "rate", "{:,.0f}"), ("at most", "most", "{:,.0f}"),
    ("core busy", "core", "{:.0%}"), ("in real time", "alone", "{:.0%}")]
COLUMNS["beside"] = [
    COST, ("requests/s beside the load", "rate", "{:,.0f}"),
    ("requests to origin", "origin", "{:.0%}")]
COLUMNS["cores"] = [
    ("times one core", "speedup", "{:.2f}"), ("CPU µs/request on one", "alone", "{:.1f}"),
    ("on two", "cpu", "{:.1f}"), ("share of the busier thread", "share", "{:.0%}"),
    ("requests/s beside the load", "rate", "{:,.0f}"), ("requests to origin", "origin", "{:.0%}")]
COLUMNS["idle"] = [
    ("KiB/connection", "each", "{:.1f}"), ("connections", "count", "{:,.0f}"),
    ("resident MiB", "resident", "{:.0f}")]
COLUMNS["empty"] = [("MiB", "resident", "{:.0f}"), ("shared pages by parts", "own", "{:.0f}")]
# Kinds of which more is better.
RISING = ("cores",)


def cost_of(row):
    """The name of the figure that a row is about."""
    return COLUMNS[row.kind][0][1]


def is_honest(row, figures):
    """Whether the origin saw what it must see: nothing for hits, everything for misses."""
    if "origin" not in figures:
        return True
    return figures["origin"] > 0.99 if row.kind in ("miss", "store") else figures["origin"] < 0.01


def best_peer(row, found):
    cost = cost_of(row)
    peers = [figures[cost] for name, figures in found.items()
             if name not in (*FLOORS, LARDER) and is_honest(row, figures)]
    return (max if row.kind in RISING else min)(peers, default=None)


def ratio(value, other):
    return f"{value / other:.2f}" if other else "–"


def table(row, found):
    """One row of the bench as a Markdown table, the cheapest peer's cost as the measure."""
    columns, cost = COLUMNS[row.kind], cost_of(row)
    floor = next((found[name][cost] for name in FLOORS if name in found), None)
    best = best_peer(row, found)
    titles = [columns[0][0], "±", "÷ floor", "÷ best peer"]
    titles += [title for title, _, _ in columns[1:]]
    lines = [f"**{row.title}**", "", f"| server | {' | '.join(titles)} |",
             "| --- |" + " ---: |" * len(titles)]
    for name, f in sorted(found.items(), key=lambda item: item[1][cost],
                          reverse=row.kind in RISING):
        mark = "" if is_honest(row, f) else " (!)"
        label = f"**{name}**" if name == LARDER else name
        cells = [columns[0][2].format(f[cost]), f"{f['spread']:.0%}", ratio(f[cost], floor),
                 ratio(f[cost], best)]
        cells += [form.format(f[figure]) for _, figure, form in columns[1:]]
        lines.append(f"| {label}{mark} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measure_of(goal, row, results, rows):
    """What a goal is measured by: the name of it and its figure, None where that is lacking."""
    if goal.server is None:
        return "", 1.0
    other = rows.get(goal.row, row)
    found = results.get(other.name, {})
    of = "" if goal.row is None else f" ({goal.row})"
    if goal.server == BEST:
        return f"{BEST}{of}", best_peer(other, found)
    return f"{goal.server}{of}", found.get(goal.server, {}).get(cost_of(other))


def goal_line(goal, row, results, rows):
    figure = results[row.name][LARDER][cost_of(row)]
    whom, measure = measure_of(goal, row, results, rows)
    sign = "≥" if goal.at_least else "≤"
    form = COLUMNS[row.kind][0][2]
    wanted = f"{sign} {goal.factor:g}" + (f" × {whom}" if whom else "")
    if measure is None:
        return f"| {row.name} | {wanted} | {form.format(figure)} | – | not measured |"
    allowed = goal.factor * measure
    reached = figure >= allowed if goal.at_least else figure <= allowed
    meaning = f" = {form.format(allowed)}" if whom else ""
    return (f"| {row.name} | {wanted}{meaning} | {form.format(figure)} | "
            f"{ratio(figure, whom and measure)} | {'yes' if reached else '**no**'} |")


def goals(results, rows):
    """Each goal of the rows that were measured, and whether Larder reaches it."""
    lines = ["**Goals**", "", "| row | goal | Larder | ratio | reached |",
             "| --- | --- | ---: | ---: | --- |"]
    for name, found in results.items():
        if LARDER in found:
            lines += [goal_line(goal, rows[name], results, rows) for goal in rows[name].goals]
    return "\n".join(lines)


def comparison(earlier, results, rows):
    lines = ["**Against the earlier run**", "",
             "| row | server | | earlier | now | change |",
             "| --- | --- | --- | ---: | ---: | ---: |"]
    for name, found in results.items():
        title, cost, form = COLUMNS[rows[name].kind][0]
        for server, figures in found.items():
            before = earlier.get("rows", {}).get(name, {}).get(server, {}).get(cost)
            if before:
                change = figures[cost] / before - 1
                lines.append(f"| {name} | {server} | {title} | {form.format(before)} | "
                             f"{form.format(figures[cost])} | {change:+.0%} |")
    return "\n".join(lines)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def show(options, results, earlier, rows):
    """The whole report; `rows` are all there are, by name."""
    print(f"{processor()}, Linux {platform.release()}; server on core {options.server_core}, load "
          f"({options.connections} connections) and origin on core {options.load_core}; medians of "
          f"{options.rounds} rounds of {options.duration} s.\n")
    for name, found in results.items():
        print(table(rows[name], found) + "\n")
    if any(not is_honest(rows[name], figures) for name, found in results.items()
           for server, figures in found.items() if server != FLOOR):
        print("(!) The origin saw another number of requests than this row is about: the figure "
              "is not comparable.\n")
    if options.goals:
        print(goals(results, rows) + "\n")
    if earlier is not None:
        print(comparison(earlier, results, rows))


def document(options, results):
    return {"processor": processor(), "duration": options.duration, "rounds": options.rounds,
            "connections": options.connections, "rows": results}
