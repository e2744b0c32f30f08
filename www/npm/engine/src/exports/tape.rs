//! Tapes: recording the agents of this module, and living tapes again. Only the module of `turnwheel/tape` has these calls.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::prelude::*;

use turnwheel::data::table::Table;
use turnwheel::json::{ObjectWriter, ToJson, Value};
use turnwheel::tape::{
    Divergence, Player, Recorder, RecorderOptions, Seeker, Seen, Tape, decode_again, seal,
};

use crate::instance::{agent_entry, misuse, next_handle, set_now, thrown};

#[wasm_bindgen]
extern "C" {
    /// Sees every text before it is written.
    pub type Redactor;

    /// Must not throw.
    #[wasm_bindgen(method)]
    fn redact(this: &Redactor, place: &str, text: &str) -> String;
}

thread_local! {
    /// The recorders of agents, by the handles of the agents.
    static RECORDERS: RefCell<Table<u32, Recorder>> = RefCell::default();
    static TAPES: RefCell<Table<u32, OpenTape>> = RefCell::default();
}

/// A tape that is lived again: from its beginning to its end, and at any moment.
struct OpenTape {
    player: Player,
    run_id: Rc<str>,
    seeker: Seeker,
}

/// Writes down what goes into an agent from now on. `counts` are what the tape has already, as [`record_counts`] gives them. If
/// `max_bytes` is not 0, longer contents of images and files are left out. With `wire`, the bytes of answers are written too.
#[wasm_bindgen]
pub fn agent_record(
    agent: u32,
    is_self_contained: bool,
    max_bytes: usize,
    redactor: Option<Redactor>,
    wire: bool,
    counts: &str,
    now: f64,
) -> Result<(), JsValue> {
    set_now(now);
    let counts = Value::parse(counts).unwrap_or_default();
    let count =
        |place: usize| counts.as_array().and_then(|list| list.get(place)?.as_u64()).unwrap_or_default();
    let redact = redactor.map(|redactor| {
        let redact = move |place: &str, text: &str| redactor.redact(place, text);
        Rc::new(redact) as Rc<turnwheel::tape::Redact>
    });
    let recorder = Recorder::with_options(RecorderOptions {
        now: crate::instance::now(),
        max_bytes: (max_bytes > 0).then_some(max_bytes),
        redact,
        wire,
        is_self_contained,
        counts: (count(0), count(1)),
    });
    agent_entry(agent)?.agent.record(&recorder).map_err(|error| thrown(&error))?;
    RECORDERS.with_borrow_mut(|recorders| drop(recorders.insert(agent, recorder)));
    Ok(())
}

/// Takes the lines that were written since the last call, as UTF-8: who keeps them need not read them.
#[wasm_bindgen]
pub fn record_take(agent: u32) -> Vec<u8> {
    recorder(agent).map(|recorder| recorder.take_lines().into_bytes()).unwrap_or_default()
}

/// Returns the length of the lines that nobody has taken yet.
#[wasm_bindgen]
pub fn record_size(agent: u32) -> usize {
    recorder(agent).map_or(0, |recorder| recorder.bytes())
}

/// Writes a mark for people.
#[wasm_bindgen]
pub fn record_note(agent: u32, note: &str) {
    if let Some(recorder) = recorder(agent) {
        recorder.note(note);
    }
}

/// Returns the numbers of events and of started effects, as a list.
#[wasm_bindgen]
pub fn record_counts(agent: u32) -> String {
    let (events, starts) = recorder(agent).map_or((0, 0), |recorder| recorder.counts());
    vec![events, starts].to_json()
}

/// Nothing is written any more.
#[wasm_bindgen]
pub fn record_end(agent: u32) {
    if let Some(recorder) = RECORDERS.with_borrow_mut(|recorders| recorders.remove(&agent)) {
        recorder.take_lines();
        recorder.stop();
    }
}

/// Returns the last line of a tape: what a replay of it gives.
#[wasm_bindgen]
pub fn tape_seal(text: &str) -> Result<String, JsValue> {
    Ok(seal(&parse(text)?))
}

/// Returns the first line of a tape.
#[wasm_bindgen]
pub fn tape_header(now: f64) -> String {
    turnwheel::tape::header(whole(now))
}

/// Opens a tape.
#[wasm_bindgen]
pub fn tape_open(text: &str) -> Result<u32, JsValue> {
    let tape = parse(text)?;
    let handle = next_handle();
    let open =
        OpenTape { player: Player::new(&tape).watching(), run_id: Rc::from(""), seeker: Seeker::new(&tape) };
    TAPES.with_borrow_mut(|tapes| drop(tapes.insert(handle, open)));
    Ok(handle)
}

/// Goes on by so many things, and returns them as a JSON list; an empty one at the end of the tape.
#[wasm_bindgen]
pub fn tape_advance(handle: u32, count: u32) -> Result<String, JsValue> {
    TAPES.with_borrow_mut(|tapes| {
        let open = tapes.get_mut(&handle).ok_or_else(|| misuse("the tape was closed"))?;
        let mut list = String::from("[");
        for _ in 0..count {
            let Some(seen) = open.player.advance().map_err(|fault| diverged(&fault))? else { break };
            if let Seen::Run(context) = &seen {
                open.run_id = context.run_id.clone();
            }
            list.push_str(if list.len() > 1 { "," } else { "" });
            let mut object = ObjectWriter::new(&mut list);
            object.field("n", &open.player.events()).field("at", &open.player.now());
            object.field("messages", &whole_of(open.player.messages().len()));
            seen.write_members(&open.run_id, &mut object);
            object.end();
        }
        list.push_str("]");
        Ok(list)
    })
}

/// Returns the moment after so many events, as JSON, without what [`tape_frame_request`] and [`tape_frame_checkpoint`] return.
#[wasm_bindgen]
pub fn tape_frame(handle: u32, events: f64) -> Result<String, JsValue> {
    at_moment(handle, events, |player| {
        let mut json = String::new();
        let mut object = ObjectWriter::new(&mut json);
        player.write_frame(&mut object);
        object.end();
        json
    })
}

/// Returns the request that was sent last at this moment; an empty text if there is none.
#[wasm_bindgen]
pub fn tape_frame_request(handle: u32, events: f64) -> Result<String, JsValue> {
    at_moment(handle, events, |player| player.request().map(ToJson::to_json).unwrap_or_default())
}

/// Returns the checkpoint of this moment.
#[wasm_bindgen]
pub fn tape_frame_checkpoint(handle: u32, events: f64) -> Result<String, JsValue> {
    at_moment(handle, events, |player| player.checkpoint().to_json())
}

fn at_moment(handle: u32, events: f64, read: impl FnOnce(&Player) -> String) -> Result<String, JsValue> {
    TAPES.with_borrow_mut(|tapes| {
        let open = tapes.get_mut(&handle).ok_or_else(|| misuse("the tape was closed"))?;
        open.seeker.seek(whole(events)).map(read).map_err(|fault| diverged(&fault))
    })
}

/// Decodes the bytes on a tape again, and compares. Returns how many answers were decoded.
#[wasm_bindgen]
pub fn tape_decode(text: &str) -> Result<f64, JsValue> {
    let decoded = decode_again(&parse(text)?).map_err(|fault| diverged(&fault))?;
    // Counts are far below the integers that a float cannot represent.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let decoded = decoded as f64;
    Ok(decoded)
}

/// Closes a tape.
#[wasm_bindgen]
pub fn tape_close(handle: u32) {
    TAPES.with_borrow_mut(|tapes| drop(tapes.remove(&handle)));
}

fn recorder(agent: u32) -> Option<Recorder> {
    RECORDERS.with_borrow(|recorders| recorders.get(&agent).cloned())
}

fn parse(text: &str) -> Result<Tape, JsValue> {
    Tape::parse(text).map_err(|error| misuse(error.to_string()))
}

/// A difference is thrown as JSON with a member of its own.
fn diverged(fault: &Divergence) -> JsValue {
    let mut json = String::new();
    let mut object = ObjectWriter::new(&mut json);
    let mut inner = ObjectWriter::new(object.key("divergence"));
    inner.field("input", &fault.input).field("expected", &fault.expected).field("got", &fault.got);
    inner.end();
    object.field("code", "internal").field("message", &fault.to_string()).field("retryable", &false);
    object.end();
    JsValue::from_str(&json)
}

fn whole_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn whole(number: f64) -> u64 {
    // Counts are far below the integers that a float cannot represent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let whole = number as u64;
    whole
}
