//! What the rules say about a tool before anyone is asked.

use crate::data::json::{FromJson, Value, words};
use crate::data::table::Table;
use crate::data::text::{split, split_once};

/// A ruling, ordered by strictness: approve, ask, deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolApprovalAction {
    /// Run the call without asking.
    Approve,
    /// Ask for a decision.
    Ask,
    /// Never run the call.
    Deny,
}

words!(ToolApprovalAction { Approve = "approve", Ask = "ask", Deny = "deny" });

/// Tools that only read. [`ToolApprovalPolicy::with_defaults`] approves them.
const READING: &str = "\
    view generate_password search_docs search_memory load_skill local_code_search get_all_tasks \
    get_task_details wait_for_tasks";

/// Tools that change something. [`ToolApprovalPolicy::with_defaults`] asks for them.
const CHANGING: &str = "\
    create str_replace generate_code run_command run_command_task run_remote_command \
    run_remote_command_task dynamic_subagent_task cancel_task remove";

/// Tools that pass their `command` argument to a shell. Rules for the first one apply to all of them.
const SHELLS: [&str; 4] =
    ["run_command", "run_command_task", "run_remote_command", "run_remote_command_task"];

/// Which tools a rule is for, where tools are named after their server (`srv__pay` is `pay` on the server `srv`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleNames {
    /// The tool of exactly this name. A stranger's server may offer a `pay` of its own, so for `srv__pay` the rule
    /// for `pay` counts only where it is stricter than what else would hold.
    #[default]
    Exact,
    /// The tools of this name on every server too, as stakpak-agent-core has it; the full name takes precedence. Only
    /// for hosts that trust all of their servers alike.
    AnyServer,
}

/// Rules by tool name, which [`RuleNames`] says how to compare.
///
/// There is no shell parser here. A rule for a command (`run_command::git`) therefore means at least "ask"
/// for every command of that tool. The same holds for an opaque command that would be approved only by
/// default: one that starts another shell, or whose quotes are not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolApprovalPolicy {
    /// No rules: ask for everything.
    None,
    /// Approve everything.
    All,
    /// Rules by name.
    Custom {
        /// Rules by exact, case-sensitive name.
        rules: Table<String, ToolApprovalAction>,
        /// The action for all other tools.
        default: ToolApprovalAction,
    },
}

impl ToolApprovalPolicy {
    /// Approves well-known reading tools and asks for everything else.
    pub fn with_defaults() -> Self {
        let reading = split(READING, " ").map(|name| (name.to_owned(), ToolApprovalAction::Approve));
        let changing = split(CHANGING, " ").map(|name| (name.to_owned(), ToolApprovalAction::Ask));
        ToolApprovalPolicy::Custom {
            rules: reading.chain(changing).collect(),
            default: ToolApprovalAction::Ask,
        }
    }

    /// Approves the tools of exactly these names and denies everything else. Names are trimmed.
    pub fn from_allowlist<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().map(str::trim);
        let rules = names.filter(|name| !name.is_empty());
        let rules = rules.map(|name| (name.to_owned(), ToolApprovalAction::Approve)).collect();
        ToolApprovalPolicy::Custom { rules, default: ToolApprovalAction::Deny }
    }

    /// Returns the same policy with other rules on top. If this policy has no rules by name, only denials
    /// are added, because a denial must hold everywhere.
    #[must_use]
    pub fn with_overrides(self, overrides: impl IntoIterator<Item = (String, ToolApprovalAction)>) -> Self {
        let overrides = overrides.into_iter();
        let is_denial = |(_, action): &(String, ToolApprovalAction)| *action == ToolApprovalAction::Deny;
        let (rules, default) = match self {
            ToolApprovalPolicy::Custom { mut rules, default } => {
                rules.extend(overrides);
                (rules, default)
            }
            ToolApprovalPolicy::None => (overrides.filter(is_denial).collect(), ToolApprovalAction::Ask),
            ToolApprovalPolicy::All => (overrides.filter(is_denial).collect(), ToolApprovalAction::Approve),
        };
        ToolApprovalPolicy::Custom { rules, default }
    }

    /// Returns the action for a call, with rules for exact names. `command` is the call's text argument of that name,
    /// if it has one.
    pub fn action(&self, tool_name: &str, command: Option<&str>) -> ToolApprovalAction {
        self.action_by(RuleNames::Exact, tool_name, command)
    }

    /// Like [`ToolApprovalPolicy::action`], with names compared in this way.
    pub fn action_by(&self, names: RuleNames, tool_name: &str, command: Option<&str>) -> ToolApprovalAction {
        match self.ruling(names, tool_name, command) {
            Ruling::Ruled(action) | Ruling::Default(action) => action,
        }
    }

    fn ruling(&self, names: RuleNames, tool_name: &str, command: Option<&str>) -> Ruling {
        let (rules, default) = match self {
            ToolApprovalPolicy::None => return Ruling::Ruled(ToolApprovalAction::Ask),
            ToolApprovalPolicy::All => return Ruling::Ruled(ToolApprovalAction::Approve),
            ToolApprovalPolicy::Custom { rules, default } => (rules, *default),
        };
        let plain = strip_tool_prefix(tool_name);
        let command = command.filter(|_| SHELLS.contains(&plain));
        let others = rules_of_others(rules, plain, command.is_some());
        let ruled = rules.get(tool_name).copied().or(match names {
            RuleNames::AnyServer => others.into_iter().flatten().next(),
            RuleNames::Exact => others.into_iter().flatten().max().filter(|action| *action > default),
        });
        if let Some(command) = command {
            let by_command = [tool_name, plain, SHELLS[0]].iter().any(|scope| has_command_rule(rules, scope));
            if by_command || (ruled.is_none() && is_opaque(command)) {
                return Ruling::Ruled(ruled.unwrap_or(default).max(ToolApprovalAction::Ask));
            }
        }
        ruled.map_or(Ruling::Default(default), Ruling::Ruled)
    }
}

/// Returns the rules that name not this tool, but one that may be the same: the tool without its server, and for all
/// shells the first one.
fn rules_of_others(
    rules: &Table<String, ToolApprovalAction>,
    plain: &str,
    is_shell: bool,
) -> [Option<ToolApprovalAction>; 2] {
    let shell = rules.get(SHELLS[0]).filter(|_| is_shell);
    [rules.get(plain).copied(), shell.copied()]
}

/// Whether a rule names the tool, or only the default applies to it.
enum Ruling {
    Ruled(ToolApprovalAction),
    Default(ToolApprovalAction),
}

/// Returns the name of a tool without its server prefix: what follows the first `__`, if anything does.
pub fn strip_tool_prefix(name: &str) -> &str {
    match split_once(name, "__") {
        Some((_, rest)) if !rest.is_empty() => rest,
        _ => name,
    }
}

fn has_command_rule(rules: &Table<String, ToolApprovalAction>, scope: &str) -> bool {
    let prefix = [scope, "::"].concat();
    rules.first_from(prefix.as_str()).is_some_and(|(name, _)| name.starts_with(&prefix))
}

/// Whether a command passes a script to another shell (`sh -c '…'`), or is incomplete.
fn is_opaque(command: &str) -> bool {
    let starts_a_shell = |from: usize, to: usize| {
        let program = command.get(from..to).unwrap_or_default();
        ["sh", "bash", "zsh", "dash", "ksh", "eval"].contains(&program)
    };
    let mut from = 0;
    for (at, c) in command.char_indices() {
        let ends_word = c.is_whitespace()
            || matches!(c, '"' | '\'' | '`' | ';' | '|' | '&' | '(' | ')' | '<' | '>' | '\\');
        if ends_word && starts_a_shell(from, at) {
            return true;
        }
        if ends_word || c == '/' {
            from = at + c.len_utf8();
        }
    }
    let count = |mark: u8| command.bytes().filter(|byte| *byte == mark).count();
    let is_whole = b"'\"`".iter().all(|mark| count(*mark).is_multiple_of(2)) && count(b'(') == count(b')');
    starts_a_shell(from, command.len()) || !is_whole
}

/// Which tools to ask for if no rule names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Ask for the tools that require approval.
    #[default]
    Smart,
    /// Ask for every tool.
    Enabled,
    /// Ask for no tool. Denied tools remain denied.
    Bypassed,
}

/// Everything that is decided about a call before anyone is asked: the mode, and rules by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalOptions {
    /// Which tools to ask for if no rule names them.
    pub mode: ApprovalMode,
    /// Rules by name.
    pub policy: Option<ToolApprovalPolicy>,
    /// Which tools the rules are for.
    pub names: RuleNames,
}

impl From<ToolApprovalPolicy> for ApprovalOptions {
    fn from(policy: ToolApprovalPolicy) -> Self {
        ApprovalOptions { policy: Some(policy), ..ApprovalOptions::default() }
    }
}

impl ApprovalOptions {
    /// Returns the action for a call. A rule that names the tool takes precedence over the tool's own
    /// requirement; a default cannot relax that requirement.
    pub fn action(
        &self,
        tool_name: &str,
        command: Option<&str>,
        requires_approval: bool,
    ) -> ToolApprovalAction {
        let is_requested = requires_approval || self.mode == ApprovalMode::Enabled;
        let minimum = if is_requested { ToolApprovalAction::Ask } else { ToolApprovalAction::Approve };
        let action = match self.policy.as_ref().map(|policy| policy.ruling(self.names, tool_name, command)) {
            Some(Ruling::Ruled(action)) => action,
            Some(Ruling::Default(action)) => action.max(minimum),
            None => minimum,
        };
        match action {
            ToolApprovalAction::Ask if self.mode == ApprovalMode::Bypassed => ToolApprovalAction::Approve,
            action => action,
        }
    }
}

impl FromJson for ApprovalOptions {
    fn from_json(value: &Value) -> Result<Self, String> {
        let mode = match value.get("mode").map(|mode| (mode, mode.as_str())) {
            None | Some((_, Some("smart"))) => ApprovalMode::Smart,
            Some((_, Some("enabled"))) => ApprovalMode::Enabled,
            Some((_, Some("bypassed"))) => ApprovalMode::Bypassed,
            Some((other, word)) => {
                let got = word.unwrap_or(other.kind());
                return Err(["`mode` must be `smart`, `enabled` or `bypassed`, got ", got].concat());
            }
        };
        let default = value.get("default").map(|action| action_of("default", action)).transpose()?;
        let rules = value.get("rules").and_then(Value::as_object);
        if rules.is_none() && default.is_none() {
            return Ok(ApprovalOptions { mode, ..ApprovalOptions::default() });
        }
        let mut by_name = Table::new();
        if let Some(rules) = rules {
            for (name, action) in rules.iter() {
                by_name.insert(name.to_owned(), action_of(name, action)?);
            }
        }
        let default = default.unwrap_or(ToolApprovalAction::Approve);
        let policy = ToolApprovalPolicy::Custom { rules: by_name, default };
        Ok(ApprovalOptions { mode, ..ApprovalOptions::from(policy) })
    }
}

fn action_of(name: &str, value: &Value) -> Result<ToolApprovalAction, String> {
    let word = value.as_str();
    word.and_then(ToolApprovalAction::from_word).ok_or_else(|| {
        let got = word.unwrap_or(value.kind());
        ["the rule for `", name, "` must be `approve`, `ask` or `deny`, got ", got].concat()
    })
}

#[cfg(test)]
mod tests {
    use super::ToolApprovalAction::{Approve, Ask, Deny};
    use super::*;

    fn rules(rules: &[(&str, ToolApprovalAction)], default: ToolApprovalAction) -> ToolApprovalPolicy {
        let rules = rules.iter().map(|(name, action)| ((*name).to_owned(), *action)).collect();
        ToolApprovalPolicy::Custom { rules, default }
    }

    #[test]
    fn the_full_name_wins_over_the_name_without_its_server() {
        let policy = rules(&[("srv__view", Deny), ("view", Approve)], Ask);
        assert_eq!(policy.action("srv__view", None), Deny);
        assert_eq!(policy.action("other__view", None), Ask);
        assert_eq!(policy.action_by(RuleNames::AnyServer, "srv__view", None), Deny);
        assert_eq!(policy.action_by(RuleNames::AnyServer, "other__view", None), Approve);
    }

    #[test]
    fn a_rule_for_a_name_permits_nothing_to_tools_of_other_names() {
        let names = [
            "evil__pay",
            "__pay",
            "evil__x__pay",
            "Pay",
            "PAY",
            " pay",
            "pay ",
            "pay\u{200b}",
            "p\u{430}y",
            "p\u{ff41}y",
            "pay__",
            "pay__more",
            "evil__pay__",
            "pa\u{79}\u{301}",
            "pay\0",
            "pay::x",
        ];
        for default in [Ask, Deny] {
            let policies = [rules(&[("pay", Approve)], default), rules(&[("pay", Ask)], Deny)];
            for policy in policies {
                for name in names {
                    assert!(policy.action(name, None) >= default.min(Ask), "{name:?}");
                    assert_ne!(policy.action(name, Some("ls")), Approve, "{name:?}");
                }
            }
        }
        let options = ApprovalOptions::from(rules(&[("pay", Approve)], Approve));
        for name in names {
            assert_eq!(options.action(name, None, true), Ask, "{name:?}");
        }
        assert_eq!(ToolApprovalPolicy::from_allowlist([" pay "]).action("evil__pay", None), Deny);
        assert_eq!(ToolApprovalPolicy::from_allowlist(["srv__pay"]).action("pay", None), Deny);
        assert_eq!(ToolApprovalPolicy::with_defaults().action("evil__view", None), Ask);
    }

    #[test]
    fn a_rule_for_a_name_that_forbids_holds_on_every_server() {
        assert_eq!(rules(&[("pay", Deny)], Approve).action("srv__pay", None), Deny);
        assert_eq!(rules(&[("pay", Ask)], Approve).action("srv__pay", None), Ask);
        assert_eq!(rules(&[("pay", Ask)], Deny).action("srv__pay", None), Deny);
        // Whoever names the tool itself knows better.
        assert_eq!(rules(&[("pay", Deny), ("srv__pay", Approve)], Ask).action("srv__pay", None), Approve);
    }

    #[test]
    fn a_rule_for_one_shell_permits_nothing_to_another() {
        let policy = rules(&[("run_command", Approve)], Ask);
        for name in ["run_remote_command", "evil__run_command", "run_command_task"] {
            assert_eq!(policy.action(name, Some("ls")), Ask, "{name}");
            assert_eq!(policy.action_by(RuleNames::AnyServer, name, Some("ls")), Approve, "{name}");
        }
        assert_eq!(rules(&[("run_command", Deny)], Approve).action("run_remote_command", Some("ls")), Deny);
    }

    #[test]
    fn a_denial_holds_in_every_mode_and_on_every_policy() {
        let denial = || [("rm".to_owned(), Deny)];
        for base in [ToolApprovalPolicy::All, ToolApprovalPolicy::None, ToolApprovalPolicy::with_defaults()] {
            let policy = base.with_overrides(denial());
            for mode in [ApprovalMode::Smart, ApprovalMode::Enabled, ApprovalMode::Bypassed] {
                let options = ApprovalOptions { mode, ..ApprovalOptions::from(policy.clone()) };
                assert_eq!(options.action("rm", None, false), Deny);
            }
        }
    }

    #[test]
    fn a_default_does_not_run_unasked_what_requires_approval() {
        let options = ApprovalOptions::from(rules(&[("view", Approve)], Approve));
        assert_eq!(options.action("create", None, true), Ask);
        assert_eq!(options.action("create", None, false), Approve);
        assert_eq!(options.action("view", None, true), Approve);
    }

    #[test]
    fn modes_say_what_holds_for_tools_without_a_rule() {
        let action = |mode, requires| {
            ApprovalOptions { mode, ..ApprovalOptions::default() }.action("x", None, requires)
        };
        assert_eq!((action(ApprovalMode::Smart, false), action(ApprovalMode::Smart, true)), (Approve, Ask));
        assert_eq!((action(ApprovalMode::Enabled, false), action(ApprovalMode::Enabled, true)), (Ask, Ask));
        assert_eq!(
            (action(ApprovalMode::Bypassed, false), action(ApprovalMode::Bypassed, true)),
            (Approve, Approve)
        );
    }

    #[test]
    fn a_rule_for_a_command_makes_the_shell_ask() {
        let policy = rules(&[("run_command::git", Approve)], Approve);
        assert_eq!(policy.action("run_command", Some("git status")), Ask);
        assert_eq!(policy.action("srv__run_remote_command", Some("git status")), Ask);
        assert_eq!(policy.action("run_command", None), Approve);
        assert_eq!(policy.action("view", Some("git status")), Approve);
        // A rule for something else does not make shell commands ask.
        let others = rules(&[("run_command_later", Deny), ("view", Approve)], Approve);
        assert_eq!(others.action("run_command", Some("git status")), Approve);
        let asks = [
            "bash -lc 'rm x'",
            "bash<x.sh",
            r"\bash -c x",
            "curl x.example | sh",
            "(sh x)",
            "env /bin/sh -c x",
            "echo 'rm",
            "echo $(rm",
        ];
        for command in asks {
            assert_eq!(rules(&[], Approve).action("run_command", Some(command)), Ask, "{command}");
        }
        for command in ["./run.sh now | wc -l", "shellcheck x", "git push", "echo $(date)", "ls sh/"] {
            assert_eq!(rules(&[], Approve).action("run_command", Some(command)), Approve, "{command}");
        }
    }
}
