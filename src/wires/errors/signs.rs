//! The signs by which errors are told apart, separated by `|` and in lower case: `_TAGS` are types, codes,
//! reasons and status words, `_TEXTS` are parts of messages.

pub(super) const OVERFLOW_TAGS: &str = "\
    context_length_exceeded|context_window_exceeded|exceed_context_size_error|\
    model_context_window_exceeded|request_too_large|too_many_prompt_tokens|too_many_tokens";

pub(super) const OVERFLOW_TEXTS: &str = "\
    total length of all messages is too long|input is too long for requested model|context length exceeded|\
    contextwindowexceeded|context size has been exceeded|context length of only|\
    than the model's context length|model context window limit|range of input length|\
    exceed max message tokens|`inputs` tokens + `max_new_tokens`|prompt token count of|prompt exceeds max|\
    tokens in request more than max|maximum allowed input length";

pub(super) const SPENT_TAGS: &str = "\
    arrearage|exceeded_current_quota_error|insufficient_quota|billing_error|billing_not_active|\
    billing_hard_limit_reached|contract_spend_limit_reached|enforced_spend_limit_reached|\
    insufficient_credits|usage_limit_reached";

pub(super) const SPENT_TEXTS: &str = "\
    daily free allocation|credits are depleted|have any credits|specified api usage limits|\
    extra usage is required|key limit exceeded|credit balance is too low|insufficient balance|\
    insufficient credit|insufficient_quota|insufficient quota|requires more credits|out of credits|\
    used all available credits|monthly spending limit|billing hard limit|payment required";

pub(super) const FILTER_TAGS: &str = "\
    bio_policy|content_filter|content_policy_violation|data_inspection_failed|\
    image_content_policy_violation|invalid_prompt|moderation_blocked|responsibleaipolicyviolation";

pub(super) const FILTER_TEXTS: &str = "\
    content management policy|content exists risk|content policy violation|was flagged|been flagged|\
    was blocked by our safety|content filtering policy|result of our safety";

pub(super) const AUTH_TAGS: &str = "\
    authentication_error|permission_error|invalid_api_key|api_key_invalid|service_disabled|\
    permission_denied|unauthenticated|401|403";

pub(super) const AUTH_TEXTS: &str = "\
    incorrect api key|invalid api key|invalid api-key|invalid x-api-key|api key not valid|\
    api key not found|api key expired|missing authentication";

pub(super) const OVERLOAD_TAGS: &str = "\
    capacity_exceeded|overloaded_error|overloaded|unavailable|compaction_unavailable|\
    engine_overloaded_error|insufficient_system_resource|service_unavailable|service_unavailable_error|\
    serviceunavailableexception|slow_down";

pub(super) const OVERLOAD_TEXTS: &str = "\
    overloaded|server is busy|over capacity|capacity temporarily";

pub(super) const THROTTLE_TAGS: &str = "\
    rate_limit_error|rate_limit_exceeded|rate_limited|ratelimitreached|resource_exhausted|\
    throttlingexception|too_many_requests|429";

pub(super) const THROTTLE_TEXTS: &str = "\
    rate limit|rate-limit|ratelimit|too many requests";

pub(super) const REQUEST_TAGS: &str = "\
    invalid_request_error|invalid_request|invalid_argument|failed_precondition|not_found|\
    not_found_error|model_not_found|out_of_range|tool_use_failed|unsupported_parameter";

pub(super) const NETWORK_TAGS: &str = "\
    cancelled|request_timeout";
