extension Tables {
    /// How long a response is fresh, and how old it is.
    static let freshness = Table.cases("9111 §4.2.1") { t in
        t.note(
            "Without lifetime and validator nothing is reused",
            [
                .get().answer(),
                .get().isForwarded,
            ])
        t.note(
            "Nor with a date alone",
            [
                .get().answer("Date: {now-60}"),
                .get().isForwarded,
            ])
        t.optimal(
            "max-age makes a response fresh",
            [
                .get().answer("Cache-Control: max-age=600"),
                .get().isHit,
            ])
        t.must(
            "A response as old as its max-age is stale",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 600"),
                .get().isForwarded,
            ])
        t.optimal(
            "One younger than its max-age is fresh",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 500"),
                .get().isHit.gets(age: 500...520),
            ])
        t.must(
            "max-age=0 is stale at once",
            [
                .get().answer("Cache-Control: max-age=0"),
                .get().isForwarded,
            ])
        t.must(
            "max-age=0 is stale whatever Expires says",
            [
                .get().answer("Cache-Control: max-age=0", "Expires: {now+600}"),
                .get().isForwarded,
            ])
        t.optimal(
            "max-age holds whatever an Expires of the past says",
            [
                .get().answer("Cache-Control: max-age=600", "Expires: {now-600}"),
                .get().isHit,
            ])
        t.optimal(
            "max-age holds whatever an invalid Expires says",
            [
                .get().answer("Cache-Control: max-age=600", "Expires: 0"),
                .get().isHit,
            ])

        t.section("9111 §5.2.2.10")
        t.optimal(
            "s-maxage makes a response fresh for a shared cache",
            [
                .get().answer("Cache-Control: s-maxage=600"),
                .get().isHit,
            ])
        t.must(
            "A short s-maxage holds, not a long max-age before it",
            [
                .get().answer("Cache-Control: max-age=600, s-maxage=1", "Age: 5"),
                .get().isForwarded,
            ])
        t.must(
            "A short s-maxage holds, not a long max-age behind it",
            [
                .get().answer("Cache-Control: s-maxage=1, max-age=600", "Age: 5"),
                .get().isForwarded,
            ])
        t.must(
            "A short s-maxage in a line of its own holds",
            [
                .get().answer("Cache-Control: max-age=600", "Cache-Control: s-maxage=1", "Age: 5"),
                .get().isForwarded,
            ])
        t.optimal(
            "A long s-maxage holds, not a short max-age",
            [
                .get().answer("Cache-Control: max-age=1, s-maxage=600", "Age: 5"),
                .get().isHit,
            ])
        t.optimal(
            "A long s-maxage holds, not max-age=0 and an Expires of the past",
            [
                .get().answer("Cache-Control: max-age=0, s-maxage=600", "Expires: {now-10}"),
                .get().isHit,
            ])
        t.must(
            "s-maxage=0 is stale at once",
            [
                .get().answer("Cache-Control: s-maxage=0, max-age=600"),
                .get().isForwarded,
            ])

        t.section("9111 §5.3")
        t.optimal(
            "An Expires to come makes a response fresh",
            [
                .get().answer("Expires: {now+2592000}"),
                .get().isHit,
            ])
        t.must(
            "An Expires of the past makes it stale",
            [
                .get().answer("Expires: {now-2592000}"),
                .get().isForwarded,
            ])
        t.must(
            "An Expires of now makes it stale",
            [
                .get().answer("Expires: {now}", "Date: {now}"),
                .get().isForwarded,
            ])
        t.must(
            "Expires counts from Date: before it, it is over",
            [
                .get().answer("Expires: {now+300}", "Date: {now+400}"),
                .get().isForwarded,
            ])
        t.optimal(
            "It counts from the arrival where Date is invalid",
            [
                .get().answer("Expires: {now+600}", "Date: whenever"),
                .get().isHit,
            ])
        t.optimal(
            "It counts from the arrival where Date is missing",
            [
                .get().answer("Expires: {now+600}", "-Date"),
                .get().isHit,
            ])
        t.must(
            "An Age beyond Expires minus Date makes it stale, if Date is slow",
            [
                .get().answer("Date: {now-10}", "Expires: {now+10}", "Age: 25"),
                .get().isForwarded,
            ])
        t.must(
            "An Age beyond Expires minus Date makes it stale, if Date is fast",
            [
                .get().answer("Date: {now+10}", "Expires: {now+20}", "Age: 15"),
                .get().isForwarded,
            ])

        t.section("9111 §4.2.3")
        t.must(
            "An Age beyond the lifetime makes a response stale as it comes",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 1200"),
                .get().isForwarded,
            ])
        t.note(
            "An old Date counts as age",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now-1200}"),
                .get().isForwarded,
            ])
        t.must(
            "The greater of Age and apparent age counts: Age",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now-10}", "Age: 700"),
                .get().isForwarded,
            ])
        t.must(
            "The greater of Age and apparent age counts: Date",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now-700}", "Age: 10"),
                .get().isForwarded,
            ])
        t.must(
            "A Date to come makes no negative age",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now+3600}"),
                .get().isHit.gets(age: 0...30),
            ])
        t.must(
            "A reused response tells its age",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now-30}"),
                .get().isHit.gets(age: 30...60),
            ])
        t.must(
            "What it was received with counts on (max-age)",
            [
                .get().answer("Cache-Control: max-age=600", "Age: 30"),
                .get().isHit.gets(age: 30...60),
            ])
        t.must(
            "What it was received with counts on (Expires)",
            [
                .get().answer("Expires: {now+600}", "Age: 30"),
                .get().isHit.gets(age: 30...60),
            ])
        t.must(
            "Date stays as it was",
            [
                .get().answer("Cache-Control: max-age=600", "Date: {now-30}"),
                .get().isHit.gets("Date: {now-30}"),
            ])
        t.must(
            "Date stays as it was beside an Expires",
            [
                .get().answer("Expires: {now+600}", "Date: {now-30}"),
                .get().isHit.gets("Date: {now-30}").gets("Expires: {now+600}"),
            ])
    }
}
