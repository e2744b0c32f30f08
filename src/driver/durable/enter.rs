//! Effects become steps, and what they answer enters the run when its turn has come.

use std::rc::Rc;
use std::task::{Context, Poll};

use futures::future::FutureExt;

use crate::data::json::{FromJson, RawJson, ToJson, Value};
use crate::data::list::ListWriter;
use crate::driver::AgentStream;
use crate::driver::run::ends_answer;
use crate::host::config::SteeringTime;
use crate::host::ports::{HookCall, StepEffect};
use crate::host::tool::{Progress, ToolOutcome};
use crate::journal::Entering;
use crate::journal::steps::{Entry, Open, Outcome, Place, RunSlot, What, object_of};
use crate::journal::tape::{read_reply, write_reply};
use crate::machine::{AgentCommand, Effect, EffectId, Input, Output, Reply};
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::question::QuestionKind;

use super::answers::{command_of, question_of};

impl AgentStream {
    // ---- effects become steps

    /// An effect would start now. Returns it if it starts in the ordinary way; otherwise it has become a step.
    pub(in crate::driver) fn open_step(&mut self, id: EffectId, effect: Effect) -> Option<Effect> {
        let Some(slot) = self.seam.slot.clone() else { return Some(effect) };
        slot.executing.set(id);
        match &effect {
            Effect::Choose => {
                slot.loose.borrow_mut().insert(id, String::new());
                return Some(effect);
            }
            Effect::Hook(HookCall::BeforeInference { .. } | HookCall::AfterInference { .. })
                if self.config.ports.hooks.iter().any(|hook| hook.wraps_models()) =>
            {
                slot.loose.borrow_mut().insert(id, String::new());
                return Some(effect);
            }
            Effect::Sleep { ms } => return self.open_timer(&slot, id, *ms),
            Effect::Approve(request) if self.config.ports.approver.is_none() => {
                let name = slot.names.borrow_mut().name(&self.state, id, &effect);
                let decision = slot.journal.engine.wait(&name, QuestionKind::Tool, request);
                slot.journal.wait_for(&slot, id, name, 0, decision.map(Reply::Approved).boxed_local());
                return None;
            }
            Effect::Execute { tool, call_id, .. } => {
                let spec = self.config.rules.tools.get(*tool);
                let (is_agent, is_idempotent) =
                    spec.map_or((false, true), |spec| (spec.is_sub_agent, spec.idempotent));
                if is_agent {
                    let name = slot.names.borrow_mut().name(&self.state, id, &effect);
                    slot.loose.borrow_mut().insert(id, name);
                    self.begin_timer(&slot, id);
                    return Some(effect);
                }
                if !is_idempotent {
                    let name = slot.names.borrow_mut().start(&self.state, call_id);
                    self.open(&slot, id, name, What::Start(id), StepEffect::Start, effect);
                    return None;
                }
            }
            _ => {}
        }
        self.open_effect(&slot, id, effect, None);
        None
    }

    /// Opens the step of an effect. A tool that must not begin twice comes with its marker.
    fn open_effect(&mut self, slot: &Rc<RunSlot>, id: EffectId, effect: Effect, marker: Option<String>) {
        let name = slot.names.borrow_mut().name(&self.state, id, &effect);
        let (what, data) = match &effect {
            Effect::Infer { request, .. } => {
                (What::Model(id), StepEffect::Model { request: request.clone() })
            }
            Effect::Execute { tool, call_id, arguments } => {
                let spec = self.config.rules.tools.get(*tool);
                let name: Rc<str> = spec.map_or_else(|| "".into(), |spec| spec.schema.name.clone());
                let (call_id, arguments) = (call_id.clone(), arguments.clone());
                (What::Tool(id, name.clone()), StepEffect::Tool { name, call_id, arguments })
            }
            effect => (What::Effect(id, ended_reply(effect)), StepEffect::Host),
        };
        let open = Open::new(name, slot, what, Some(effect));
        *open.marker.borrow_mut() = marker;
        self.open_as_step(slot, id, open, data);
    }

    fn open(
        &mut self,
        slot: &Rc<RunSlot>,
        id: EffectId,
        name: String,
        what: What,
        data: StepEffect,
        effect: Effect,
    ) {
        let open = Open::new(name, slot, what, Some(effect));
        self.open_as_step(slot, id, open, data);
    }

    fn open_as_step(&mut self, slot: &Rc<RunSlot>, id: EffectId, open: Rc<Open>, data: StepEffect) {
        slot.open.borrow_mut().insert(id, open.clone());
        slot.journal.open(open, data);
        self.begin_works(slot);
    }

    /// Begins what the engine has asked for, in the ordinary way.
    fn begin_works(&mut self, slot: &Rc<RunSlot>) {
        loop {
            let next = slot.to_begin.borrow_mut().pop_front();
            let Some((id, effect)) = next else { return };
            let is_wanted = slot.open.borrow().get(&id).is_some_and(|open| open.is_undecided());
            if !is_wanted {
                continue;
            }
            if let Effect::Infer { .. } = effect {
                slot.clock.begin_answer();
            }
            slot.executing.set(id);
            self.carry_out(id, effect);
            self.begin_timer(slot, id);
        }
    }

    // ---- replies are outcomes

    /// A piece of an answer, or progress: it passes, unless it ends the answer.
    pub(in crate::driver) fn record_piece(&mut self, id: EffectId, mut reply: Reply) -> Option<Reply> {
        let Some(slot) = self.seam.slot.clone() else { return Some(reply) };
        if let Reply::Progress(Progress::Ask(asking)) = &mut reply
            && asking.ask.id.is_none()
        {
            // It is asked in this process alone, so no id that repeats is spent on it.
            slot.asks.set(slot.asks.get() + 1);
            let number = crate::data::text::number(slot.asks.get());
            asking.ask.id = Some([&slot.journal.life, "/", &slot.prefix, &number].concat());
        }
        let is_model = slot.open.borrow().get(&id).is_some_and(|open| matches!(open.what, What::Model(_)));
        if !is_model || !ends_answer(&reply) {
            return Some(reply);
        }
        let mut events = self.state.arrived_of(id);
        if let Reply::Stream(end) = reply {
            events.push(end);
        }
        self.round.remove(id);
        slot.clock.end_answer();
        let open = slot.open.borrow().get(&id).cloned();
        open.iter().for_each(|open| open.end(Outcome::Value(value_of_events(&events))));
        None
    }

    /// The last reply of an effect: it is what the work of a step has ended with.
    pub(in crate::driver) fn record_outcome(&mut self, id: EffectId, reply: Reply) -> Option<Reply> {
        let Some(slot) = self.seam.slot.clone() else { return Some(reply) };
        if slot.loose.borrow_mut().remove(&id).is_some() {
            return Some(reply);
        }
        if matches!(reply, Reply::Slept) && self.is_limit(&slot, id) {
            return None;
        }
        let open = slot.open.borrow().get(&id).cloned();
        let Some(open) = open else { return Some(reply) };
        let held = slot.held.borrow_mut().remove(&id).map(|held| held.take()).unwrap_or_default();
        open.end(Outcome::Value(object_of(|object| {
            write_reply(self.state.messages(), self.state.chosen_messages(), &reply, object.key("reply"));
            if !held.is_empty() {
                let mut changes = ListWriter::new(object.key("state"));
                for (key, value) in &held {
                    let mut change = ListWriter::new(changes.item());
                    key.write_json(change.item());
                    if let Some(value) = value {
                        value.write_json(change.item());
                    }
                    change.end();
                }
                changes.end();
            }
        })));
        None
    }

    /// An effect is not wanted any more.
    pub(in crate::driver) fn drop_step(&mut self, id: EffectId) {
        let Some(slot) = self.seam.slot.clone() else { return };
        let open = slot.open.borrow_mut().remove(&id);
        if let Some(open) = open {
            if matches!(open.what, What::Model(_)) {
                slot.clock.end_answer();
            }
            open.drop_work();
        }
        slot.loose.borrow_mut().remove(&id);
        slot.pieces.borrow_mut().retain(|(of, _)| *of != id);
        slot.held.borrow_mut().remove(&id);
        slot.timers.borrow_mut().remove(&id);
        self.give_up_timer(&slot, id);
        if slot.waiting.borrow().contains(&id) {
            slot.journal.stop_waiting(&slot, id);
        }
    }

    // ---- what enters

    /// Does what the journal wants of the run. Returns whether there was anything.
    pub(in crate::driver) fn deliver_next(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(slot) = self.seam.slot.clone() else { return false };
        slot.quiet.set(false);
        *slot.waker.borrow_mut() = Some(cx.waker().clone());
        if slot.is_root() {
            slot.journal.poll(cx);
        }
        if !slot.to_begin.borrow().is_empty() {
            self.begin_works(&slot);
            return true;
        }
        if slot.cut.take() {
            self.cut_answer(&slot);
            return true;
        }
        // One piece at a time: the listeners hear of it before the next one enters.
        let piece = slot.pieces.borrow_mut().pop_front();
        if let Some((id, piece)) = piece {
            slot.clock.paused(|| self.enter_piece(id, piece));
            return true;
        }
        let entry = slot.entry.take();
        let Some(entry) = entry else { return false };
        self.handle_progress();
        slot.clock.paused(|| self.enter(&slot, entry));
        true
    }

    /// Nothing is left to do in this run until something enters.
    pub(in crate::driver) fn when_idle(&mut self, cx: &mut Context<'_>) -> Option<Poll<bool>> {
        let slot = self.seam.slot.clone()?;
        self.wait_for_results(&slot);
        if slot.place == Place::Hosted {
            self.handle_progress();
            if !self.outputs.is_empty() {
                return Some(Poll::Ready(true));
            }
        }
        if !slot.quiet.replace(true) {
            slot.wake_host();
        }
        if slot.is_root() {
            if slot.journal.pump(cx) {
                return Some(Poll::Ready(true));
            }
            let journal = &slot.journal;
            let is_idle = !journal.slots().iter().any(|slot| slot.is_busy());
            let waits_for_mail = !journal.is_waiting() || journal.needs_a_step();
            if is_idle && journal.open.borrow().is_empty() && waits_for_mail && !self.state.is_ended() {
                journal.ride();
                self.wait_for_mail(&slot);
                return Some(Poll::Ready(true));
            }
        }
        if self.round.tasks.has_woken() {
            cx.waker().wake_by_ref();
        }
        Some(Poll::Pending)
    }

    fn enter(&mut self, slot: &Rc<RunSlot>, entry: Entry) {
        match entry {
            Entry::Pieces(open) => take_pieces(slot, &open),
            Entry::Mail(commands) => self.enter_mail(slot, commands),
            Entry::Record(open) => self.enter_record(slot, &open),
            Entry::Limit => {
                if let Some((timer, _)) = slot.total.take() {
                    self.round.remove(timer);
                    self.void_answer(slot);
                    self.step(Input::Reply(timer, Reply::Slept));
                }
            }
            Entry::CallLimit(call) => {
                let effect = slot.loose.borrow().iter().find(|(_, name)| *name == call).map(|(id, _)| *id);
                let timer =
                    effect.and_then(|effect| slot.timers.borrow().get(&effect).map(|(timer, ..)| *timer));
                if let Some(timer) = timer {
                    self.round.remove(timer);
                    self.step(Input::Reply(timer, Reply::Slept));
                }
            }
            Entry::Outside { id, reply, .. } => {
                if has_waited(slot, id) {
                    match question_of(slot, id) {
                        Some(question) => self.handle_command(command_of(question, reply)),
                        None => self.step(Input::Reply(id, reply)),
                    }
                }
            }
        }
    }

    /// A stored piece enters by the short way, as it did when it came.
    fn enter_piece(&mut self, id: EffectId, piece: AssistantMessageEvent) {
        self.update_now();
        self.seam.enters(&self.state, self.now, &Entering::Piece(id, &piece));
        match self.state.apply_stream_event(self.now, id, Reply::Stream(piece)) {
            Ok(event) => self.outputs.append(|out| out.extend(event.map(Output::Event))),
            Err(other) => self.step(Input::Reply(id, other)),
        }
    }

    /// An answer is about to be cut. What has arrived of it counts if its own record brings the cut along, for that has it too;
    /// behind another record, nobody will know it when the run is replayed.
    fn void_answer(&mut self, slot: &RunSlot) {
        if let Some(id) = slot.unstored_answer() {
            self.step(Input::Reply(id, Reply::Stream(AssistantMessageEvent::Start)));
        }
    }

    fn enter_mail(&mut self, slot: &RunSlot, commands: Vec<AgentCommand>) {
        let mut commands = commands.into_iter().peekable();
        while let Some(command) = commands.next() {
            if self.state.is_ended() {
                // It is for the next run.
                self.handover.inbox.post(command);
                continue;
            }
            match command {
                AgentCommand::Cancel(reason) => {
                    self.void_answer(slot);
                    self.enter_abort(&reason);
                }
                AgentCommand::Steer(letter) => {
                    let mut letters = vec![letter];
                    while let Some(AgentCommand::Steer(letter)) =
                        commands.next_if(|next| matches!(next, AgentCommand::Steer(_)))
                    {
                        letters.push(letter);
                    }
                    self.handle_progress();
                    let usual = self.config.rules.steering.when;
                    if letters.iter().any(|letter| letter.when.unwrap_or(usual) == SteeringTime::Now) {
                        self.void_answer(slot);
                    }
                    self.step(Input::Steer(letters));
                }
                command => self.handle_command(command),
            }
        }
    }

    fn enter_record(&mut self, slot: &Rc<RunSlot>, open: &Rc<Open>) {
        let record = open.record.borrow().clone();
        let Some(record) = record else { return };
        let Some(id) = open.what.effect() else { return };
        let is_open = slot.open.borrow().get(&id).is_some_and(|known| Rc::ptr_eq(known, open));
        // What was to enter before has ended it.
        if !is_open {
            return;
        }
        slot.open.borrow_mut().remove(&id);
        self.round.remove(id);
        match (&open.what, &record.outcome) {
            (What::Start(_), Outcome::Value(life)) => {
                let life = life.to_value().as_str().unwrap_or_default().to_owned();
                if let Some(effect) = open.effect.take() {
                    self.open_effect(slot, id, effect, Some(life));
                }
            }
            (What::Model(_), _) => match events_of(open) {
                Ok(mut events) => {
                    let end = events.pop().map(Reply::Stream).filter(ends_answer);
                    self.step(Input::Reply(id, end.unwrap_or(Reply::StreamEnded)));
                }
                Err(why) => slot.journal.cannot_read(&open.name, &why),
            },
            (What::Tool(..), Outcome::Late) => match self.state.timer_of(id) {
                Some(timer) => self.step(Input::Reply(timer, Reply::Slept)),
                None => self.step(Input::Reply(id, Reply::Executed(ToolOutcome::Interrupted))),
            },
            (What::Tool(..) | What::Effect(..), Outcome::Value(value)) => {
                self.enter_value(id, open, &value.to_value())
            }
            (What::Tool(..), _) | (What::Start(_), Outcome::Cancelled) => {
                self.step(Input::Reply(id, Reply::Executed(ToolOutcome::Interrupted)));
            }
            // The end that it was ended for came too late: the run was ending already.
            (What::Effect(_, reply), Outcome::Cancelled) => {
                let reply = Value::parse(reply).unwrap_or_default();
                self.enter_reply(id, open, &reply);
            }
            (_, Outcome::Error(why)) => slot.journal.cannot_read(&open.name, why),
            _ => slot.journal.cannot_read(&open.name, "it has no value"),
        }
    }

    /// What a port of the host has answered.
    fn enter_value(&mut self, id: EffectId, open: &Open, value: &Value) {
        for change in value.list_at("state") {
            match change.as_array() {
                Some([Value::String(key), value]) => self.change_state(key, Some(value)),
                Some([Value::String(key)]) => self.change_state(key, None),
                _ => {}
            }
        }
        self.enter_reply(id, open, value.get("reply").unwrap_or(&Value::Null));
    }

    fn change_state(&self, key: &str, value: Option<&Value>) {
        match value {
            Some(value) => self.state.session().set(key, value.clone()),
            None => self.state.session().delete(key),
        }
        if let Some(slot) = &self.seam.slot {
            slot.journal.engine.state_entered(key, value);
        }
    }

    fn enter_reply(&mut self, id: EffectId, open: &Open, reply: &Value) {
        match read_reply(self.state.messages(), self.state.chosen_messages(), reply) {
            Ok(reply) => self.step(Input::Reply(id, reply)),
            Err(why) => {
                if let Some(slot) = &self.seam.slot {
                    slot.journal.cannot_read(&open.name, &why);
                }
            }
        }
    }
}

/// What is stored of an answer is to enter, but for its end.
fn take_pieces(slot: &RunSlot, open: &Open) {
    let Some(id) = open.what.effect() else { return };
    match events_of(open) {
        Ok(mut events) => {
            events.retain(|event| {
                !matches!(event, AssistantMessageEvent::Done { .. } | AssistantMessageEvent::Error(_))
            });
            slot.pieces.borrow_mut().extend(events.into_iter().map(|event| (id, event)));
        }
        Err(why) => slot.journal.cannot_read(&open.name, &why),
    }
}

/// Whether the run still waits for what the engine does by itself. It does not wait any more.
fn has_waited(slot: &RunSlot, id: EffectId) -> bool {
    let mut waiting = slot.waiting.borrow_mut();
    let before = waiting.len();
    waiting.retain(|known| *known != id);
    waiting.len() < before
}

/// What is stored of an answer.
pub(super) fn value_of_events(events: &Vec<AssistantMessageEvent>) -> RawJson {
    object_of(|object| {
        object.field("events", events);
    })
}

/// The events of a stored answer, or why they cannot be read.
fn events_of(open: &Open) -> Result<Vec<AssistantMessageEvent>, String> {
    let record = open.record.borrow();
    let failed = |text: &str| {
        let error = ErrorInfo { retryable: false, ..ErrorInfo::new(ErrorKind::Internal, text) };
        Ok(vec![AssistantMessageEvent::Start, AssistantMessageEvent::Error(error)])
    };
    match record.as_ref().map(|record| &record.outcome) {
        Some(Outcome::Value(value)) => Vec::from_json(value.to_value().get("events").unwrap_or(&Value::Null)),
        Some(Outcome::Error(text)) => failed(text),
        _ => failed("the call was cancelled"),
    }
}

/// The reply of an effect that was ended before it had one.
fn ended_reply(effect: &Effect) -> &'static str {
    match effect {
        Effect::Prepare { .. } => r#"{"kind":"prepared","error":"it was ended"}"#,
        Effect::Compact { .. } => r#"{"kind":"compacted","error":"it was ended"}"#,
        Effect::Approve(_) => r#"{"kind":"approved","error":"it was ended"}"#,
        Effect::Poll(_) => r#"{"kind":"polled","messages":[]}"#,
        _ => r#"{"kind":"hook"}"#,
    }
}
