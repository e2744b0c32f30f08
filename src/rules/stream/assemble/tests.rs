use super::*;

fn call(text: &str, closed: bool, stop: MessageStopReason) -> (RawJson, Option<CallFault>) {
    use AssistantMessageEvent as E;
    let mut assembler = Assembler::default();
    let start = E::ToolCallStart { index: 0, call_id: "a".into(), tool_name: "t".into() };
    assembler.push(start).unwrap();
    assembler.push(E::ToolCallDelta { index: 0, delta: text.into() }).unwrap();
    if closed {
        assembler.push(E::ToolCallEnd { index: 0, metadata: None }).unwrap();
    }
    let done = assembler.finish(stop);
    let ContentBlock::ToolCall(block) = &done.content[0] else { panic!("no call") };
    (block.arguments.clone(), done.faults.first().map(|(_, fault)| fault.clone()))
}

#[test]
fn arguments_are_read_as_the_contract_says() {
    use MessageStopReason::{Length, ToolUse};
    assert_eq!(call("", true, ToolUse), (RawJson::empty_object(), None));
    assert_eq!(call("\"null\"", true, ToolUse), (RawJson::empty_object(), None));
    assert_eq!(call("{}\"\"", true, ToolUse), (RawJson::empty_object(), None));
    assert_eq!(call("{\"a\":1}", true, Length).1, None);
    assert_eq!(call("{\"a\":1}", false, Length), (RawJson::empty_object(), Some(CallFault::Cut)));
    assert_eq!(call("{\"a\":", true, Length).1, Some(CallFault::Cut));
    assert!(matches!(call("{\"a\":", true, ToolUse).1, Some(CallFault::Malformed(_))));
    assert_eq!(call("[1]", true, ToolUse).1, Some(CallFault::NotAnObject));
    // What a server does to whole arguments is undone; arguments that were cut are not put together.
    let city = RawJson::parse("{\"city\":\"Oslo\"}").unwrap();
    for text in ["{}{\"city\":\"Oslo\"}", "\"{\\\"city\\\":\\\"Oslo\\\"}\""] {
        assert_eq!(call(text, true, ToolUse), (city.clone(), None));
        assert_eq!(call(text, false, ToolUse).1, Some(CallFault::Cut));
    }
    assert_eq!(call("{}{\"city\":", true, Length).1, Some(CallFault::Cut));
    assert!(matches!(call("{\"a\":1}{\"a\":2}", true, ToolUse).1, Some(CallFault::Malformed(_))));
    assert_eq!(call("\"Oslo\"", true, ToolUse).1, Some(CallFault::NotAnObject));
}

#[test]
fn a_second_start_voids_what_came_before() {
    let mut assembler = Assembler::default();
    for text in ["void", "new"] {
        assembler.push(AssistantMessageEvent::Start).unwrap();
        assembler.push(AssistantMessageEvent::TextStart { index: 0 }).unwrap();
        assembler.push(AssistantMessageEvent::TextDelta { index: 0, delta: text.into() }).unwrap();
    }
    let assembled = assembler.finish(MessageStopReason::Stop);
    assert_eq!(assembled.content, [ContentBlock::text("new")]);
}

#[test]
fn a_gap_in_the_numbers_is_refused() {
    let mut assembler = Assembler::default();
    assert!(assembler.push(AssistantMessageEvent::TextStart { index: 1 }).is_err());
    assert!(assembler.push(AssistantMessageEvent::TextDelta { index: 0, delta: "x".into() }).is_err());
}
