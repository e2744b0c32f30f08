//! In which order the calls of a batch run, and when each of them starts.

use crate::data::table::Table;
use crate::data::text;
use crate::host::config::ToolExecutionPolicy;
use crate::host::isolate::guard;
use crate::host::ports::HookCall;
use crate::rules::approval::ApprovalGate;
use crate::words::event::AgentEvent;
use crate::words::message::ToolResultCause;

use super::batch::{Batch, CallStatus, Ending, with_arguments};
use super::output::Effect;
use super::step::Step;

impl Step<'_> {
    /// Forms groups from the calls that may run.
    pub(super) fn plan(&mut self, batch: &mut Batch) {
        if batch.cleared.is_empty()
            || (self.gate() == ApprovalGate::Batch && !self.state.approvals.is_complete())
        {
            return;
        }
        let cleared = std::mem::take(&mut batch.cleared);
        match &self.rules.tool_execution {
            ToolExecutionPolicy::Concurrent => cleared.iter().for_each(|place| batch.ready.push_back(*place)),
            ToolExecutionPolicy::Sequential => {
                cleared.iter().for_each(|place| batch.groups.push_back(vec![*place]));
            }
            ToolExecutionPolicy::Priority => self.group_by_priority(batch, &cleared),
            ToolExecutionPolicy::Custom(partition) => {
                let mut blocks = Vec::with_capacity(cleared.len());
                for call in cleared.iter().filter_map(|place| batch.calls.get(*place)) {
                    blocks.push(with_arguments(&call.block, &call.arguments));
                }
                let groups = guard(|| partition(&blocks, &self.state.about()))
                    .and_then(|groups| checked_partition(&groups, &cleared));
                match groups {
                    Ok(groups) => groups.into_iter().for_each(|group| batch.groups.push_back(group)),
                    Err(why) => {
                        let text = ["custom tool execution strategy returned an invalid partition: ", &why];
                        let text = text.concat();
                        for place in &cleared {
                            self.settle(batch, *place, ToolResultCause::Skipped, &text);
                        }
                    }
                }
            }
        }
    }

    fn group_by_priority(&self, batch: &mut Batch, cleared: &[usize]) {
        let mut groups: Table<std::cmp::Reverse<i32>, Vec<usize>> = Table::new();
        for place in cleared {
            let tool = batch.calls.get(*place).and_then(|call| self.spec(&call.block.tool_name));
            let priority = std::cmp::Reverse(tool.map_or(0, |(_, spec)| spec.priority));
            match groups.get_mut(&priority) {
                Some(group) => group.push(*place),
                None => drop(groups.insert(priority, vec![*place])),
            }
        }
        groups.into_iter().for_each(|(_, group)| batch.groups.push_back(group));
    }

    /// Starts what may start. A group starts when the one before it is finished and the hooks for it have
    /// run.
    pub(super) fn launch(&mut self, batch: &mut Batch) {
        // Nothing starts before it is known whether a steering message has arrived.
        if self.is_polled(batch) || !matches!(batch.ending, Ending::Normal) {
            return;
        }
        loop {
            let has_room = self.rules.max_concurrent_tools.is_none_or(|limit| batch.running < limit.max(1));
            match batch.ready.front().copied().filter(|_| has_room) {
                Some(place) => {
                    batch.ready.pop_front();
                    self.launch_call(batch, place);
                }
                None if batch.ready.is_empty() && batch.running == 0 && batch.has_called_hooks() => {
                    let Some(group) = batch.groups.pop_front() else { return };
                    batch.ready = group.into();
                }
                None => return,
            }
        }
    }

    fn launch_call(&mut self, batch: &mut Batch, place: usize) {
        let is_ready = batch.calls.get(place).is_some_and(|call| call.status.is_ready());
        if is_ready && self.is_grouped() && !self.check(batch, place) {
            return;
        }
        let Some(call) = batch.calls.get(place).filter(|call| call.status.is_ready()) else {
            return;
        };
        let is_refused = self.state.spending.is_wrapping_up && !batch.is_answer;
        if is_refused || !self.may_call_tool(call.announced || call.counted) {
            self.settle(batch, place, ToolResultCause::Budget, "");
            if self.is_in_order() {
                // The next call waits for its turn.
                self.completed(batch);
            }
            return;
        }
        let Some(call) = batch.calls.get_mut(place) else { return };
        call.counted = true;
        batch.running += 1;
        let announce = (!call.announced).then(|| AgentEvent::ToolExecutionStart {
            call_id: call.block.call_id.clone(),
            tool_name: call.block.tool_name.clone(),
            arguments: call.arguments.clone(),
            at: self.now,
        });
        if self.rules.hooks.before_tool_execution {
            let call = with_arguments(&call.block, &call.arguments);
            let hook = Effect::Hook(HookCall::BeforeToolExecution { call });
            let effect = self.start_announced(hook, announce);
            batch.effects.insert(effect, place);
            if let Some(call) = batch.calls.get_mut(place) {
                call.status = CallStatus::BeforeHook(effect);
            }
        } else {
            self.execute(batch, place, announce);
        }
    }
}

/// Converts indices into the cleared calls to places, and refuses anything that is not a partition.
fn checked_partition(groups: &[Vec<usize>], cleared: &[usize]) -> Result<Vec<Vec<usize>>, String> {
    let wrong = |index: usize, why: &str| Err(["index ", &text::number(index), why].concat());
    let mut left: Vec<Option<usize>> = cleared.iter().copied().map(Some).collect();
    let mut placed = Vec::with_capacity(groups.len());
    for group in groups {
        let mut places = Vec::with_capacity(group.len());
        for index in group {
            match left.get_mut(*index).map(Option::take) {
                Some(Some(place)) => places.push(place),
                Some(None) => return wrong(*index, " stands twice"),
                None => return wrong(*index, " is out of range"),
            }
        }
        placed.push(places);
    }
    match left.iter().position(Option::is_some) {
        Some(missing) => wrong(missing, " is missing"),
        None => Ok(placed),
    }
}
