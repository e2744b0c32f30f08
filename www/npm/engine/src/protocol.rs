//! The words that both sides share, each declared once. The JavaScript side, `www/npm/boundary/protocol.js`, is
//! generated from these tables by the test at the end of this file, which fails while the file says anything else.

/// Declares a set of words: an enum, its words in JavaScript, and the list of all of them.
macro_rules! words {
    ($(#[doc = $about:literal])* $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)* }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, reason = "a word may be of use to the other side alone")]
        pub(crate) enum $name { $($(#[doc = $doc])* $variant,)* }

        impl $name {
            pub(crate) fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            #[cfg(test)]
            const ALL: &'static [$name] = &[$($name::$variant,)*];
            #[cfg(test)]
            const ABOUT: &'static str = concat!($($about),*);
        }
    };
}

/// Declares the kinds of entries of a batch, with what each means.
macro_rules! entries {
    ($($(#[doc = $doc:literal])* $variant:ident = $number:literal as $word:ident,)*) => {
        /// The kinds of entries. Unless stated otherwise the text comes first, the number after the semicolon.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, reason = "the page engine has no journal, so nothing in it says a time")]
        pub(crate) enum EntryKind { $($(#[doc = $doc])* $variant = $number,)* }

        #[cfg(test)]
        const ENTRIES: &[(&str, EntryKind, &str)] =
            &[$((stringify!($word), EntryKind::$variant, concat!($($doc),*)),)*];
    };
}

entries! {
    /// A piece of text; the block.
    Text = 1 as TEXT,
    /// A piece of thinking; the block.
    Thinking = 2 as THINKING,
    /// A piece of a call's arguments; the block.
    Arguments = 3 as ARGUMENTS,
    /// The streaming block belongs to this call, whose id is the preceding string: the tool's name; the block.
    Call = 4 as CALL,
    /// An event as JSON.
    Event = 5 as EVENT,
    /// A message, as JSON, was appended to the history.
    Append = 6 as APPEND,
    /// The message of the last `message_end` was appended to the history.
    AppendAnswer = 7 as APPEND_ANSWER,
    /// The result of this call was appended to the history.
    AppendResult = 8 as APPEND_RESULT,
    /// The history was truncated; how many messages it keeps.
    Truncate = 9 as TRUNCATE,
    /// A message from before the truncation was appended to the history; its index there.
    Copy = 10 as COPY,
    /// An effect starts, as JSON; its slot.
    Effect = 11 as EFFECT,
    /// An effect is cancelled; its slot.
    Cancel = 12 as CANCEL,
    /// The fate of a posted message: the turn, or nothing if it was not delivered; the receipt.
    Receipt = 13 as RECEIPT,
    /// The run is over; nothing follows. The text is the structured output, if there is one.
    End = 14 as END,
    /// `message_end` with the last answer in the history.
    MessageEnd = 15 as MESSAGE_END,
    /// `tool_execution_end` with a result that was already sent; the text is the call's id.
    ToolEnd = 16 as TOOL_END,
    /// `turn_end` as JSON.
    TurnEnd = 17 as TURN_END,
    /// `agent_end` as JSON, whose messages are followed by the last messages of the history; how many of them.
    AgentEnd = 18 as AGENT_END,
    /// `tool_calls_proposed` with the calls of the last answer in the history.
    Proposed = 19 as PROPOSED,
    /// `tool_execution_start` with the call's own arguments; the text is the call's id.
    ToolStart = 20 as TOOL_START,
    /// `turn_start`; the turn.
    TurnStart = 21 as TURN_START,
    /// `message_start`.
    MessageStart = 22 as MESSAGE_START,
    /// Calls that start together. Each is announced in turn, until somebody posts anything; then `run_started` is told
    /// how many were. Always the last entry. 0: the ids of the calls are the preceding strings; 1: a JSON list of ids,
    /// or of whole `tool_execution_start` events where the arguments differ from the model's.
    Starts = 23 as STARTS,
    /// A string for the next entry of another kind.
    String = 24 as STRING,
    /// A request starts, as JSON; its slot.
    Http = 25 as HTTP,
    /// A tool call starts, with the tool's name as the preceding string: the call's id; its slot.
    Tool = 26 as TOOL,
    /// `turn_end` with the last answer in the history and the results of calls, whose ids are the preceding strings:
    /// the reason; the turn.
    TurnEnded = 27 as TURN_ENDED,
    /// A tool result with a single text was appended to the history. Preceding strings: the call's id, the tool's name,
    /// the text. The text of this entry is the time.
    AppendText = 28 as APPEND_TEXT,
    /// What follows is of this time, in milliseconds: that of the journal, not of the clock.
    Time = 29 as TIME,
}

/// The kinds of pieces that a host's `streamFn` yields, as numbers of `stream_delta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeltaKind;

impl DeltaKind {
    pub(crate) const TEXT: u32 = 1;
    pub(crate) const THINKING: u32 = 2;
    pub(crate) const TOOL_CALL: u32 = 3;
}

words! {
    /// What the engine asks for, each answered at its slot.
    EffectKind {
        Http = "http",
        Stream = "stream",
        Tool = "tool",
        Key = "key",
        Approve = "approve",
        Hook = "hook",
        PrepareTurn = "prepareTurn",
        Transform = "transform",
        Compact = "compact",
        Steering = "steering",
        FollowUp = "followUp",
        Sleep = "sleep",
        Step = "step",
        Record = "record",
        Wait = "wait",
        BackOff = "backOff",
        State = "state",
        Abort = "abort",
    }
}

words! {
    /// The synchronous rules of the host, which the engine calls inside a step.
    RuleName {
        ConvertToLlm = "convertToLlm",
        TransformContext = "transformContext",
        PreTurn = "preTurn",
        PreDispatch = "preDispatch",
        PostTurn = "postTurn",
        PostLoop = "postLoop",
        Steering = "steering",
        FollowUp = "followUp",
        DynamicSystemPrompt = "dynamicSystemPrompt",
        ResultTexts = "resultTexts",
        Retry = "retry",
        ToolExecution = "toolExecution",
        RequiresApproval = "requiresApproval",
    }
}

words! {
    /// The functions among the options; the engine is told which are set.
    OptionFunction {
        ConvertToLlm = "convertToLlm",
        TransformContext = "transformContext",
        AsyncTransformContext = "asyncTransformContext",
        GetApiKey = "getApiKey",
        GetSteeringMessages = "getSteeringMessages",
        GetFollowUpMessages = "getFollowUpMessages",
        ApproveTool = "approveTool",
        DynamicSystemPrompt = "dynamicSystemPrompt",
        PrepareTurn = "prepareTurn",
    }
}

words! {
    /// The options that may be functions, or hold some; the engine is told which do.
    OptionPart {
        Retry = "retry",
        ToolExecution = "toolExecution",
        Compaction = "compaction",
        Summarize = "summarize",
        ResultTexts = "resultTexts",
    }
}

words! {
    /// The stages at which hooks are called.
    HookStage {
        BeforeInference = "beforeInference",
        AfterInference = "afterInference",
        BeforeToolExecution = "beforeToolExecution",
        AfterToolExecution = "afterToolExecution",
        OnError = "onError",
    }
}

words! {
    /// Where policies decide.
    PolicySlot {
        PreTurn = "preTurn",
        PreDispatch = "preDispatch",
        PostTurn = "postTurn",
        PostLoop = "postLoop",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic here is a test that fails")]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use turnwheel::authority::{Act, Leave};
    use turnwheel::machine::OUTPUT_TOOL;
    use turnwheel::message::ToolResultCause;

    use super::*;

    const CAUSES: &[ToolResultCause] = {
        use ToolResultCause::*;
        &[
            UnknownTool,
            InvalidArguments,
            Incomplete,
            Rejected,
            Denied,
            Skipped,
            PolicyStop,
            Steering,
            Aborted,
            Transfer,
            Timeout,
            Threw,
            Interrupted,
            Filtered,
            Budget,
        ]
    };

    const FILE: &str = "../boundary/protocol.js";
    const AUTHORITY: &str = "../messages/authority.js";

    fn list<T: Copy>(all: &[T], word: fn(T) -> &'static str, separator: &str) -> String {
        all.iter().map(|one| format!("\"{}\"", word(*one))).collect::<Vec<_>>().join(separator)
    }

    /// A comment of at most 110 columns, with a tag on its last line.
    fn comment(text: &str, tag: &str) -> String {
        let mut lines = vec![String::from(" *")];
        for word in text.split_whitespace() {
            if lines.last().is_some_and(|line| line.len() + word.len() > 110) {
                lines.push(String::from(" *"));
            }
            let line = lines.last_mut().unwrap();
            line.push(' ');
            line.push_str(word);
        }
        if !tag.is_empty() {
            lines.push(format!(" * {tag}"));
        }
        match &lines[..] {
            [line] => format!("/**{} */\n", line.trim_start_matches(" *")),
            _ => format!("/**\n{}\n */\n", lines.join("\n")),
        }
    }

    /// The JavaScript side: entry kinds as constants that a bundler inlines, sets of words as types or frozen lists.
    fn javascript() -> String {
        let mut out = String::from(
            "// @ts-check\n// Generated from www/npm/engine/src/protocol.rs: `WRITE_PROTOCOL=1 cargo test -p turnwheel-npm`.\n\
             // The words that the engine and the facade share.\n\n\
             // The kinds of entries of a batch. Unless stated otherwise the text comes first, the number after the semicolon.\n",
        );
        for (name, kind, doc) in ENTRIES {
            write!(out, "\n{}export const {name} = {};\n", comment(doc, ""), *kind as u32).unwrap();
        }
        let mut types = |name: &str, about: &str, words: String| {
            write!(out, "\n{}", comment(about, &format!("@typedef {{{words}}} {name}"))).unwrap();
        };
        types("EffectKind", EffectKind::ABOUT, list(EffectKind::ALL, EffectKind::as_str, " | "));
        types("RuleName", RuleName::ABOUT, list(RuleName::ALL, RuleName::as_str, " | "));
        types("OptionPart", OptionPart::ABOUT, list(OptionPart::ALL, OptionPart::as_str, " | "));
        let mut lists = |name: &str, about: &str, words: String| {
            write!(out, "\n/**{about} */\nexport const {name} = /** @type {{const}} */ ([{words}]);\n")
                .unwrap();
        };
        lists("FUNCTIONS", OptionFunction::ABOUT, list(OptionFunction::ALL, OptionFunction::as_str, ", "));
        lists("STAGES", HookStage::ABOUT, list(HookStage::ALL, HookStage::as_str, ", "));
        lists("POLICIES", PolicySlot::ABOUT, list(PolicySlot::ALL, PolicySlot::as_str, ", "));
        let causes = list(CAUSES, ToolResultCause::as_str, ", ");
        lists("CAUSES", " The causes of results that no tool wrote.", causes);
        write!(
            out,
            "\n/** The kinds of pieces that a host's `streamFn` yields. */\n\
             export const DELTAS = {{ text_delta: {}, thinking_delta: {}, tool_call_delta: {} }};\n\n\
             /** The engine's own tool for structured answers. */\nexport const OUTPUT_TOOL = {OUTPUT_TOOL:?};\n",
            DeltaKind::TEXT,
            DeltaKind::THINKING,
            DeltaKind::TOOL_CALL,
        )
        .unwrap();
        out
    }

    /// The table of what a client may do.
    fn authority() -> String {
        let mut out = String::from(
            "// @ts-check\n// Generated from src/rules/authority.rs: `WRITE_PROTOCOL=1 cargo test -p turnwheel-npm`.\n\n\
             /**\n * What a client may do: without being asked, only if its door allows it, never. The host may do all of it.\n \
             * @type {{ readonly [act: string]: \"yes\" | \"asked\" | \"no\" }}\n */\nexport const CLIENTS = {\n",
        );
        for (_, word, leave) in Act::CLIENTS {
            let leave = match leave {
                Leave::Yes => "yes",
                Leave::Asked => "asked",
                Leave::No => "no",
            };
            writeln!(out, "  {word}: \"{leave}\",").unwrap();
        }
        out.push_str("};\n");
        out
    }

    #[test]
    fn the_javascript_side_says_the_same() {
        is_generated(FILE, &javascript());
        is_generated(AUTHORITY, &authority());
    }

    fn is_generated(file: &str, wanted: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("WRITE_PROTOCOL").is_some() {
            std::fs::write(&file, wanted).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == wanted,
            "{} is not what protocol.rs says; `WRITE_PROTOCOL=1 cargo test -p turnwheel-npm` writes it",
            file.display()
        );
    }
}
