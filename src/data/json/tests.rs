use super::*;

#[test]
fn what_is_read_is_written_again() {
    for text in [
        r#"{"a":1,"b":[true,false,null],"c":"x\ny\"\\"}"#,
        "[]",
        "{}",
        "-1.5e+10",
        "12345678901234567890123",
        r#""\u0001""#,
    ] {
        assert_eq!(Value::parse(text).unwrap().to_json(), text);
    }
}

#[test]
fn a_template_gets_its_values_in_order() {
    let mut out = String::new();
    fill("{\"a\":\"$\",\"b\":[#]}", &["x\"$#", without_comma(",1,2"), "more"], &mut out);
    assert_eq!(out, "{\"a\":\"x\\\"$#\",\"b\":[1,2]}");
}

#[test]
fn surrogates_are_joined_and_lone_ones_mended() {
    assert_eq!(Value::parse(r#""\ud83d\ude00""#).unwrap(), "😀".into());
    assert_eq!(Value::parse(r#""\ud83d!""#).unwrap(), "\u{fffd}!".into());
    assert_eq!(Value::parse(r#""\ud83d\u0041""#).unwrap(), "\u{fffd}A".into());
    assert_eq!(RawJson::parse(r#" {"a":"\ud83d"} "#).unwrap().as_str(), "{\"a\":\"\u{fffd}\"}");
}

#[test]
fn broken_json_is_refused() {
    for text in ["", "{", "[1,]", "{\"a\"}", "01", "1.", "tru", "\"a", "\"\\x\"", "{} x", "\"\n\"", "+1"] {
        assert!(Value::parse(text).is_err(), "{text}");
        assert!(RawJson::parse(text).is_err(), "{text}");
    }
    for text in [
        "[,1]",
        "[1 2]",
        "{,\"a\":1}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{\"a\" 1}",
        "{a:1}",
        "{\"a\":}",
        "-",
        "1e",
        "\"\\u12\"",
        "\"\\ud83d\\u00g0\"",
        "\"\\ud83d",
        "nul",
        "[1}",
        "\"\u{1}\"",
    ] {
        assert!(Value::parse(text).is_err(), "{text}");
        assert!(RawJson::parse(text).is_err(), "{text}");
    }
    assert!(Value::parse(&"[".repeat(100_000)).is_err());
    let error = Value::parse("[1 2]").unwrap_err();
    assert_eq!(error.text(), "a comma or `]` was expected at byte 3");
    assert_eq!((error.message(), error.offset()), ("a comma or `]` was expected", 3));
}

#[test]
fn whole_numbers_are_read_as_such_and_milliseconds_down_to_one() {
    let read = |text: &str| {
        let value = Value::parse(&["{\"n\":", text, "}"].concat()).unwrap();
        (value.get("n").and_then(Value::as_u64), value.number_at("n"))
    };
    let cases = [
        ("12", (Some(12), Some(12))),
        ("12.00", (Some(12), Some(12))),
        ("12.5", (None, Some(12))),
        ("12.0e3", (None, None)),
        ("-1", (None, None)),
        ("18446744073709551616", (None, None)),
        ("\"12\"", (None, None)),
    ];
    for (text, wanted) in cases {
        assert_eq!(read(text), wanted, "{text}");
    }
}

#[test]
fn objects_are_equal_by_their_members_in_any_order() {
    let parse = |text: &str| Value::parse(text).unwrap();
    let one = parse(r#"{"a":1,"b":{"c":2}}"#);
    assert_eq!(one, parse(r#"{"b":{"c":2},"a":1}"#));
    for other in
        [r#"{"a":1}"#, r#"{"a":1,"b":{"c":3}}"#, r#"{"a":1,"b":{"c":2},"d":4}"#, r#"{"a":1,"d":{"c":2}}"#]
    {
        assert_ne!(one, parse(other), "{other}");
    }
}

#[test]
fn of_equal_keys_the_last_wins() {
    assert_eq!(Value::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap().to_json(), r#"{"b":2,"a":3}"#);
}

#[test]
fn plain_text_is_found_to_its_end_at_every_length() {
    for n in 0..40 {
        for mark in ["\"", "\\\"\"", "\u{e9}\"", "\\n\""] {
            let text = format!("\"{}{mark}", "é".repeat(n));
            assert!(Reader::new(&text).string().unwrap().starts_with(&"é".repeat(n)));
        }
    }
}

#[test]
fn what_is_json_is_what_another_reader_takes_for_json() {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"b\\n\"",
        "\"é😀\"",
        "\"\\u00e9\"",
        "0",
        "12",
        "-3.5",
        "1e-1",
        "true",
        "false",
        "null",
        " ",
        "\n",
        "\t",
        "\0",
        "\"",
        "\\",
        "\"long enough for two words, \\\" too\"",
        "{\"k\":[1,2]}",
        "nul",
        "\u{1}",
    ];
    let (mut state, mut taken) = (1_u64, 0);
    let mut dice = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for _ in 0..40_000 {
        // Often on the way to a complete value.
        let mut text = ["", "{", "{\"a\":", "[", "[1,"][dice(5)].to_owned();
        (0..dice(5)).for_each(|_| text += pieces[dice(pieces.len())]);
        text.push_str(["", "}", "]", "}"][dice(4)]);
        let wanted: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        taken += usize::from(wanted.is_some());
        let mut reader = Reader::new(&text);
        let passed = reader.pass_over().and_then(|()| reader.end());
        assert_eq!(passed.is_ok(), wanted.is_some(), "{text:?}");
        let read = Value::parse(&text).ok().map(|value| serde_json::from_str(&value.to_json()).unwrap());
        assert_eq!(read, wanted, "{text:?}");
    }
    assert!(taken > 1_000, "{taken}");
}

#[test]
fn what_a_number_is_as_a_double_is_found_without_one() {
    use super::numbers::{Extent, extent};
    let dice = |seed: &mut u64| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*seed >> 33).unwrap()
    };
    let mut seed = 20_261_127;
    let digits = |seed: &mut u64, most: usize| -> String {
        let count = 1 + dice(seed) % most;
        (0..count).map(|_| char::from(b"0123456789"[dice(seed) % 10])).collect()
    };
    let mut seen = [0; 3];
    for round in 0..60_000 {
        let whole = digits(&mut seed, if round % 7 == 0 { 400 } else { 3 });
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let (sign, point) = (["", "-"][round % 2], round % 3 > 0);
        let fraction = if point { format!(".{}", digits(&mut seed, 400)) } else { String::new() };
        let near = [308, 309, 324, 323, 310, 700][digits(&mut seed, 2).parse::<usize>().unwrap() % 6];
        let exponent = match round % 5 {
            0 => String::new(),
            1 => format!("e{near}"),
            2 => format!("E-{near}"),
            3 => format!("e+{}", digits(&mut seed, 4)),
            _ => format!("e-{}", digits(&mut seed, 25)),
        };
        let text = [sign, whole, &fraction, &exponent].concat();
        let double: f64 = text.parse().unwrap();
        let expected = match double {
            _ if double.is_infinite() => Extent::Infinite,
            _ if double == 0.0 && double.is_sign_negative() => Extent::NegativeZero,
            _ => Extent::Ordinary,
        };
        assert_eq!(extent(&text), expected, "{text}");
        seen[expected as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 2_000), "{seen:?}");
    let bounds = [
        "1.7976931348623157e308",
        "17976931348623158e292",
        "1.7976931348623158078e308",
        "-4.9e-324",
        "-2.4703282292062328e-324",
    ];
    assert!(bounds.iter().all(|text| extent(text) == Extent::Ordinary));
    assert_eq!(extent("1.7976931348623158080e308"), Extent::Infinite);
    assert_eq!(extent("-2.4703282292062327e-324"), Extent::NegativeZero);
    assert_eq!(extent(&["1".repeat(309), "e-1".into()].concat()), Extent::Ordinary);
}

#[test]
fn arguments_are_the_same_for_all_readers_however_many_names_there_are() {
    let many = |names: std::ops::Range<u32>| names.map(|n| format!("\"n{n}\":{n},")).collect::<String>();
    let whole = format!("{{{}\"last\":[]}}", many(0..3_000));
    assert_eq!(RawJson::parse_arguments(&whole).unwrap().unwrap().as_str(), whole);
    for (at, to) in [(3, 4), (9, 10), (2_990, 2_991)] {
        let twice = format!("{{{}{}\"last\":[]}}", many(0..3_000), many(at..to));
        let read = RawJson::parse_arguments(&twice).unwrap().unwrap();
        assert_eq!(read.as_str(), twice.replacen(&many(at..to), "", 1));
        assert_eq!(RawJson::parse(&twice).unwrap().as_arguments(), Ok(read));
    }
    let own = RawJson::parse(&whole).unwrap();
    assert!(own.as_arguments().unwrap().is_same(&own));
    for broken in ["", "{", "{\"a\":1e}", "{}{}", "[1,]"] {
        assert_eq!(RawJson::parse_arguments(broken).err(), RawJson::parse(broken).err(), "{broken}");
    }
}
