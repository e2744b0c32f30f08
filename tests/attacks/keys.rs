//! Servers repeat the key in every form, cut anywhere and split over pieces; it stands in nothing that leaves the model.
//! Random keys, forms, cuts and pieces, each from a seed that the failure names.

use std::rc::Rc;

use futures::executor::block_on;
use futures::future::ready;
use futures::stream::{self, StreamExt};
use rig::dice::Dice;
use turnwheel::cancel::CancelToken;
use turnwheel::config::AgentLoopConfig;
use turnwheel::driver::agent_loop;
use turnwheel::error::ErrorKind;
use turnwheel::event::AgentEvent;
use turnwheel::http::{HttpModel, HttpResponse};
use turnwheel::ports::AgentRunContext;
use turnwheel::retry::RetryConfig;
use turnwheel::scripted::Clock;
use turnwheel::wires::{HttpRequest, WireOptions, wire};

const WIRES: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn key(dice: &Dice) -> String {
    let length = 12 + dice.below(60);
    let mut key: String = (0..length).map(|_| char::from(*dice.pick(LETTERS))).collect();
    for mark in ["-", "_", ".", "/", "+", "=", "%", "\\", "&"] {
        if dice.chance(15) {
            key.insert_str(dice.below(length), mark);
        }
    }
    // A key is not a word, and does not begin like the ordinary text around it.
    format!("q7{key}")
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

/// Encodes some letters of a text, or all; always what would be taken for an escape.
fn some(dice: &Dice, text: &str, form: impl Fn(u8) -> String) -> String {
    let all = dice.chance(40);
    text.bytes()
        .map(|byte| if all || byte == b'%' || dice.chance(40) { form(byte) } else { char::from(byte).into() })
        .collect()
}

fn encoded(dice: &Dice, key: &str) -> String {
    match dice.below(10) {
        0 => key.to_owned(),
        1 => key.to_lowercase(),
        2 => key.to_uppercase(),
        3 => some(dice, key, |byte| format!("%{byte:02x}")),
        4 => some(dice, key, |byte| format!("%25{byte:02X}")),
        5 => key.replace('\\', "\\\\").replace('/', "\\/"),
        6 => key.bytes().map(|byte| format!("\\u{byte:04x}")).collect(),
        7 => key.bytes().map(|byte| format!("&#x{byte:X};")).collect(),
        8 => key.bytes().map(|byte| format!("&#{byte};")).collect(),
        _ => {
            let before: String = "a:b".chars().take(dice.below(4)).collect();
            base64(format!("{before}{key}").as_bytes())
        }
    }
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The pieces of a text, cut at random.
fn pieces(dice: &Dice, text: &str) -> Vec<String> {
    let most = *dice.pick(&[1, 2, 5, 20, 1_000]);
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = (1 + dice.below(most)).min(rest.len());
        let at = (at..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap();
        let (piece, after) = rest.split_at(at);
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

/// A model on a wire, to which a server answers this.
fn ask(
    wire_name: &str,
    key: &str,
    status: u16,
    headers: &[(&str, &str)],
    body: Vec<Vec<u8>>,
) -> (String, Option<ErrorKind>) {
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let transport = move |_: HttpRequest| {
        let body = stream::iter(body.clone().into_iter().map(Ok)).boxed_local();
        ready(Ok::<_, String>(HttpResponse { status, headers: headers.clone(), body }))
    };
    let clock = Rc::new(Clock::default());
    let wire = wire(wire_name, WireOptions::default()).unwrap();
    let model = HttpModel::new(wire, Rc::new(transport), clock.clone()).with_key(key).model("m");
    let mut config = AgentLoopConfig::new(model, clock);
    config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
    let mut run =
        agent_loop(vec!["Hi".into()], config, AgentRunContext::new("run", "session"), CancelToken::new());
    let (mut told, mut text) = (String::new(), String::new());
    while let Some(event) = block_on(run.next()) {
        told.push_str(&format!("{event:?}\n"));
        if let AgentEvent::MessageUpdate(delta) = &event {
            text.push_str(&delta.text);
        }
    }
    let result = block_on(run.finish());
    let kind = result.error.as_ref().map(turnwheel::AgentError::code);
    told.push_str(&format!("{result:?}\n{}\n{text}", result.text));
    (told, kind)
}

/// Fails if the key, or a good part of it, stands in a text.
fn check(told: &str, key: &str, echo: &str, seed: u64) {
    let small = told.to_lowercase().replace("\\\\", "\\");
    for form in [
        key.to_lowercase(),
        echo.to_lowercase(),
        echo.chars().take(echo.len().min(60) * 3 / 4).collect::<String>().to_lowercase(),
    ] {
        assert!(!small.contains(&form.replace("\\\\", "\\")), "seed {seed}: {form} stands in {told}");
    }
}

#[test]
fn no_form_of_a_key_stands_in_an_error_wherever_it_is_cut() {
    for seed in 0..1_000 {
        let dice = Dice::new(seed);
        let key = key(&dice);
        let echo = encoded(&dice, &key);
        let before = "x ".repeat(*dice.pick(&[0, 1, 140, 148, 1_970, 1_990, 1_999, 2_000]) + dice.below(8));
        let message = format!("{before}{echo}{}", " and so on".repeat(dice.below(3)));
        let body = match dice.below(5) {
            0 => message,
            1 => format!("<title>{message}</title>"),
            2 => format!(r#"{{"detail":{}}}"#, json(&message)),
            3 => format!("data: {{\"error\":{{\"message\":{}}}}}\n\n", json(&message)),
            _ => format!(
                r#"{{"error":{{"message":{},"type":{},"code":{}}}}}"#,
                json(&message),
                json(&echo),
                json(&echo)
            ),
        };
        let status = *dice.pick(&[200, 400, 401, 404, 500]);
        let body = pieces(&dice, &body).into_iter().map(String::into_bytes).collect();
        let (told, kind) = ask(WIRES[dice.below(4)], &key, status, &[], body);
        assert!(kind.is_some(), "seed {seed}");
        check(&told, &key, &echo, seed);
    }
}

#[test]
fn no_form_of_a_key_stands_in_an_answer_however_it_is_split() {
    for seed in 0..600 {
        let dice = Dice::new(seed);
        let key = key(&dice);
        let echo = encoded(&dice, &key);
        let text = format!("you said {echo} to me");
        let member = *dice.pick(&["content", "reasoning_content"]);
        let mut body = String::new();
        for piece in pieces(&dice, &text) {
            body.push_str(&format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"{member}\":{}}}}}]}}\n\n",
                json(&piece)
            ));
        }
        body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Bye.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        let body = pieces(&dice, &body).into_iter().map(String::into_bytes).collect();
        let (told, kind) = ask("openai-chat", &key, 200, &[], body);
        assert_eq!(kind, None, "seed {seed}");
        assert!(told.contains("[key]") && told.contains("to me"), "seed {seed}: {echo} {told}");
        check(&told, &key, &echo, seed);
    }
}

#[test]
fn a_redirect_is_an_error_that_names_it_and_is_not_tried_again() {
    for wire in WIRES {
        for status in [300, 301, 302, 303, 307, 308] {
            let location = "https://thief.example/v1?key=sk-of-the-test-1";
            let headers = [("Location", location), ("x-should-retry", "true")];
            let (told, kind) = ask(wire, "sk-of-the-test-1", status, &headers, vec![b"moved".to_vec()]);
            assert_eq!(kind, Some(ErrorKind::InvalidRequest), "{wire} {status}");
            assert!(told.contains(&format!("redirects ({status}) to https://thief.example/v1;")), "{told}");
            assert!(told.contains("retryable: false") && !told.contains("sk-of-the-test-1"), "{told}");
        }
    }
}
