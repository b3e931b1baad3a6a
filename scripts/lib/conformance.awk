# Makes a table of the report that the conformance tests write: section, obligation, verdict, title
# and reason of each case, separated by tabs, sorted by section.
#
# Exit status 1: something required fails, or a failure that is written down has gone; 3: the runner
# failed (-v runner=STATUS), and no verdict tells why.

function kept(section, obligation,    all) {
    all = count[section, obligation]
    return all == 0 ? "-" : passed[section, obligation] + 0 "/" all
}

function row(name, section) {
    printf "%-16s %10s %10s %12s %7s %7s\n", name, kept(section, "required"),
        kept(section, "optimal"), kept(section, "informative"), failed[section] + 0,
        known[section] + 0
}

function tell(verdict, heading,    i) {
    for (i = 1; i <= cases; i++) {
        if (verdicts[i] != verdict) continue
        if (heading != "") print "\n" heading
        heading = ""
        print "  " texts[i]
    }
}

{
    if (!($1 in seen)) { seen[$1] = 1; order[++sections] = $1 }
    verdicts[++cases] = $3
    texts[cases] = $1 ": " $4 " (" $2 ")\n      " $5
    for (part = 0; part < 2; part++) {
        section = part == 0 ? $1 : "all"
        count[section, $2]++
        if ($3 == "passed" || $3 == "unexpected") passed[section, $2]++
        if ($3 == "failed") failed[section]++
        if ($3 == "known") known[section]++
    }
    if ($3 == "failed" && $2 == "required") bad = 1
    if ($3 == "failed") some = 1
    if ($3 == "unexpected") bad = 1
}

END {
    printf "%-16s %10s %10s %12s %7s %7s\n", "section", "required", "optimal", "informative",
        "failed", "known"
    for (i = 1; i <= sections; i++) row(order[i], order[i])
    row("all " cases, "all")
    tell("known", "Known failures:")
    tell("unexpected", "Written down as failing, but passed:")
    tell("failed", "Failed:")
    if (bad) exit 1
    if (runner != 0 && !some) exit 3
}
