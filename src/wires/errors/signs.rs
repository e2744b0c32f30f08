//! The signs by which errors are told apart, separated by `|` and in lower case: `_TAGS` are types, codes,
//! reasons and status words, `_TEXTS` are parts of messages.

pub(super) const OVERFLOW_TAGS: &str = "\
    context_length_exceeded|context_window_exceeded|exceed_context_size_error|\
    model_context_window_exceeded|request_too_large|too_many_prompt_tokens|too_many_tokens|\
    prompt_too_long|context_limit_exceeded|input_too_long|token_limit_exceeded|1261";

pub(super) const OVERFLOW_TEXTS: &str = "\
    total length of all messages is too long|input is too long for requested model|context length exceeded|\
    contextwindowexceeded|context size has been exceeded|context length of only|\
    than the model's context length|model context window limit|range of input length|\
    exceed max message tokens|`inputs` tokens + `max_new_tokens`|prompt token count of|prompt exceeds max|\
    tokens in request more than max|maximum allowed input length|\
    must be less than max_seq_len|greater than max_seq_len|exceeds maximum input length|exceeds max_input_len|\
    cannot exceed the total tokens limit|cannot truncate to|context the overflows|context overflow|prompt tokens too long|\
    number of tokens in the prompt cannot exceed|tokens limit exceeded by messages|`inputs` must have less than|\
    max input characters|conversation is too long|messages exceed the context|prompt 超长|prompt超长|输入过长|\
    输入长度超|输入内容过长|上下文长度超|超出上下文|超过上下文|超出最大上下文|超过最大上下文|超出模型的最大|超过模型的最大|超过模型最大|\
    超出模型最大|超过最大长度|超出最大长度|token 数量超过|token数量超过|tokens 超过|历史记录和问题的字数太多|コンテキスト長を超|\
    最大コンテキスト|入力が長すぎ|컨텍스트 길이를 초과|최대 컨텍스트|длину контекста|длина контекста|слишком длинный запрос|\
    longueur de contexte maximale|maximale kontextlänge|longitud máxima de contexto";

pub(super) const SPENT_TAGS: &str = "\
    arrearage|exceeded_current_quota_error|insufficient_quota|billing_error|billing_not_active|\
    billing_hard_limit_reached|contract_spend_limit_reached|enforced_spend_limit_reached|\
    insufficient_credits|usage_limit_reached|\
    accountoverdueerror|balance_not_enough|insufficient_balance|insufficient_user_quota|insufficient_funds|quota_exceeded|\
    quota_exhausted|usage_not_included|spending_limit_reached|subscription_expired|free_tier_exhausted|\
    1113|1308|1309|1310|1311|1312|1313|1314|1315|1316|1317|1318|1319|1320|1321";

pub(super) const SPENT_TEXTS: &str = "\
    daily free allocation|credits are depleted|have any credits|specified api usage limits|\
    extra usage is required|key limit exceeded|credit balance is too low|insufficient balance|\
    insufficient credit|insufficient_quota|insufficient quota|requires more credits|out of credits|\
    used all available credits|monthly spending limit|billing hard limit|payment required|\
    usage limit reached|usage limit exceeded|reached your usage limit|hit your usage limit|reached your weekly|\
    quota exhausted|quota has been exhausted|quota is not enough|not enough balance|account balance is|balance is insufficient|\
    account is overdue|overdue payment|no remaining credit|run out of credit|plan has expired|subscription has expired|\
    limit exhausted|余额不足|余额已|欠费|额度不足|额度已|使用上限|套餐已|配额已用|残高が不足|残高不足|잔액이 부족|недостаточно средств";

pub(super) const FILTER_TAGS: &str = "\
    bio_policy|content_filter|content_policy_violation|data_inspection_failed|\
    image_content_policy_violation|invalid_prompt|moderation_blocked|responsibleaipolicyviolation|\
    content_filtered|content_blocked|prompt_blocked|safety_error|sensitive_words_detected|sensitivecontentdetected|\
    inputtextsensitivecontentdetected|outputtextsensitivecontentdetected|contentfilter|content_moderation|1301|1026|1027";

pub(super) const FILTER_TEXTS: &str = "\
    content management policy|content exists risk|content policy violation|was flagged|been flagged|\
    was blocked by our safety|content filtering policy|result of our safety|\
    inappropriate content|new_sensitive|sensitive content|sensitive information|sensitive words|usage policies|\
    violates our usage policy|blocked by guardrail|guardrail intervened|content filter|content_filter|safety filter|敏感|内容安全|\
    不安全|违规|コンテンツポリシー|unsafe content";

/// What says of nothing but the key that it is wrong.
pub(super) const KEY_TAGS: &str = "\
    authentication_error|invalid_api_key|api_key_invalid|unauthenticated|invalid_authentication_error|invalid_token|incorrect_api_key|invalidapikey";

pub(super) const AUTH_TAGS: &str = "\
    authentication_error|permission_error|invalid_api_key|api_key_invalid|service_disabled|\
    permission_denied|unauthenticated|401|403";

pub(super) const AUTH_TEXTS: &str = "\
    incorrect api key|invalid api key|invalid api-key|invalid x-api-key|api key not valid|\
    api key not found|api key expired|missing authentication";

pub(super) const OVERLOAD_TAGS: &str = "\
    capacity_exceeded|overloaded_error|overloaded|unavailable|compaction_unavailable|\
    engine_overloaded_error|insufficient_system_resource|service_unavailable|service_unavailable_error|\
    serviceunavailableexception|slow_down|\
    server_overloaded|model_overloaded|modeloverloaded|serveroverloaded|1305|system_busy";

pub(super) const OVERLOAD_TEXTS: &str = "\
    overloaded|server is busy|over capacity|capacity temporarily|\
    at capacity|high demand|no available capacity|temporarily unavailable|繁忙|过载|访问量过大|負荷|混み合";

pub(super) const THROTTLE_TAGS: &str = "\
    rate_limit_error|rate_limit_exceeded|rate_limited|ratelimitreached|resource_exhausted|\
    throttlingexception|too_many_requests|429|\
    rate_limit_reached_error|ratelimitexceeded|ratelimitexceedederror|limit_requests|limit_burst_rate|1302|1303";

pub(super) const THROTTLE_TEXTS: &str = "\
    rate limit|rate-limit|ratelimit|too many requests|\
    请求过于频繁|频率|限流|并发";

pub(super) const REQUEST_TAGS: &str = "\
    invalid_request_error|invalid_request|invalid_argument|failed_precondition|not_found|\
    not_found_error|model_not_found|out_of_range|tool_use_failed|unsupported_parameter";

pub(super) const NETWORK_TAGS: &str = "\
    cancelled|request_timeout";
