//! A tape, lived again natively and printed: what a maintainer does with one that came with a bug report.

use std::path::Path;

use anyhow::{Context, Result};
use turnwheel::event::AgentEvent;
use turnwheel::json::{RawJson, ToJson};
use turnwheel::tape::{Player, Seen, Tape, decode_again};

/// The longest line, in characters.
const WIDTH: usize = 200;

/// Prints a tape. Returns whether this engine does what the tape says.
///
/// # Errors
/// If the file is no tape.
pub fn run(file: &Path) -> Result<bool> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let tape = Tape::parse(&text).with_context(|| format!("{} is no tape", file.display()))?;
    println!("written by turnwheel {}", tape.header().text_at("engine").unwrap_or("of an unknown version"));
    let begin = tape.header().number_at("createdAt").unwrap_or_default();
    let mut player = Player::new(&tape).watching();
    loop {
        match player.advance() {
            Ok(Some(seen)) => {
                let line = line_of(&seen);
                let at = player.now().saturating_sub(begin);
                let short: String = line.chars().take(WIDTH).collect();
                println!("{:>6} {:>7}.{:03} s  {short}", player.events(), at / 1_000, at % 1_000);
            }
            Ok(None) => break,
            Err(fault) => {
                println!("{fault}");
                return Ok(false);
            }
        }
    }
    match decode_again(&tape) {
        Ok(0) => {}
        Ok(count) => println!("the bytes of {count} answers are decoded to the same"),
        Err(fault) => {
            println!("the bytes are decoded otherwise: {fault}");
            return Ok(false);
        }
    }
    let end = if tape.is_complete() { "" } else { "; the recording was cut here" };
    println!("{} events, {} messages{end}", player.events(), player.messages().len());
    Ok(true)
}

fn line_of(seen: &Seen) -> String {
    match seen {
        Seen::Run(context) => format!("run {}", context.run_id),
        Seen::Input(input) => format!("in     {}", input.as_str()),
        Seen::Reply { name, reply, .. } => format!("reply  {name} {}", reply.as_str()),
        Seen::Rule(rule) => format!("rule   {} says {}", rule.rule, rule.answer.as_str()),
        Seen::Event(event) => format!("event  {}", of_event(event)),
        Seen::Start { name, .. } => format!("start  {name}"),
        Seen::Cancel { name, .. } => format!("cancel {name}"),
        Seen::Answer { name, number, answer, .. } => format!("answer {name} {number} {}", answer.to_json()),
        Seen::Note(note) => format!("note   {note}"),
    }
}

/// The history stands in the end of a run once more; its messages were events already.
fn of_event(event: &AgentEvent) -> String {
    match event {
        AgentEvent::AgentEnd { messages, stop_reason, .. } => {
            format!("agent_end {}, {} messages", stop_reason.as_str(), messages.len())
        }
        other => RawJson::as_str(&other.to_raw()).to_owned(),
    }
}
