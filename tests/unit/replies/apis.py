"""What providers' APIs answer: status and body, as their documentation gives them."""

from __future__ import annotations

from .meanings import (
    BLOCKED_HOST,
    CONTENT,
    DEAD,
    GARBAGE,
    LATE,
    LATER,
    LOST,
    NO_LOGIN,
    NO_QUOTA,
    NO_RELAY,
    POLICY,
    SENDER,
    SENT,
    SLOWER,
    SPENT,
    UNKNOWN,
    UNWANTED,
    Row,
)

API_REPLIES: list[Row] = [
    # Resend: resend.com/docs/api-reference/errors
    ("Resend", "http", 200, "", '{"id":"49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}', *SENT),
    ("Resend", "http", 422, "", '{"statusCode":422,"name":"validation_error","message":"Invalid '
     "`to` field. The email address needs to follow the `email@example.com` or `Name "
     '<email@example.com>` format."}', *DEAD),
    ("Resend", "http", 422, "", '{"statusCode":422,"name":"invalid_from_address",'
     '"message":"Invalid `from` field."}', *SENDER),
    ("Resend", "http", 403, "", '{"statusCode":403,"name":"validation_error","message":"The '
     'example.org domain is not verified. Please, add and verify your domain."}', *SENDER),
    ("Resend", "http", 403, "", '{"statusCode":403,"name":"validation_error","message":"You can '
     'only send testing emails to your own email address (s@example.org)."}', *POLICY),
    ("Resend", "http", 401, "", '{"statusCode":401,"name":"missing_api_key","message":"Missing '
     'API key in the authorization header."}', *NO_LOGIN),
    ("Resend", "http", 403, "", '{"statusCode":403,"name":"invalid_api_key","message":"API key '
     'is invalid."}', *NO_LOGIN),
    ("Resend", "http", 400, "", '{"statusCode":400,"name":"validation_error","message":"API key '
     'is invalid"}', *NO_LOGIN),
    ("Resend", "http", 401, "", '{"statusCode":401,"name":"restricted_api_key","message":"This '
     'API key is restricted to only send emails."}', *NO_LOGIN),
    ("Resend", "http", 429, "", '{"statusCode":429,"name":"rate_limit_exceeded","message":"Too '
     'many requests. Please limit the number of requests per second."}', *SLOWER),
    ("Resend", "http", 429, "", '{"statusCode":429,"name":"daily_quota_exceeded","message":"You '
     'have reached your daily email sending quota."}', *SPENT),
    ("Resend", "http", 429, "", '{"statusCode":429,"name":"monthly_quota_exceeded",'
     '"message":"You have reached your monthly email sending quota."}', *SPENT),
    ("Resend", "http", 409, "", '{"statusCode":409,"name":"concurrent_idempotent_requests",'
     '"message":"Same idempotency key used while original request is still in progress."}',
     *GARBAGE),
    ("Resend", "http", 409, "", '{"statusCode":409,"name":"invalid_idempotent_request",'
     '"message":"Same idempotency key used with a different request payload."}', *GARBAGE),
    ("Resend", "http", 422, "", '{"statusCode":422,"name":"invalid_attachment",'
     '"message":"Attachment must have either a `content` or `path`."}', *CONTENT),
    ("Resend", "http", 451, "", '{"statusCode":451,"name":"security_error","message":"We may '
     'have found a security issue with the request."}', *POLICY),
    ("Resend", "http", 500, "", '{"statusCode":500,"name":"application_error","message":"An '
     'unexpected error occurred."}', *GARBAGE),
    # Brevo: developers.brevo.com, error codes
    ("Brevo", "http", 201, "", '{"messageId":"<202601010000.1@smtp-relay.mailin.fr>"}', *SENT),
    ("Brevo", "http", 400, "", '{"code":"invalid_parameter","message":"email is not valid in to"}',
     *DEAD),
    ("Brevo", "http", 400, "", '{"code":"invalid_parameter","message":"Sending has been rejected '
     "because the sender you used s@example.org is not valid. Validate your sender or "
     'authenticate your domain"}', *SENDER),
    ("Brevo", "http", 400, "", '{"code":"missing_parameter","message":"subject is missing"}',
     *CONTENT),
    ("Brevo", "http", 400, "", '{"code":"duplicate_parameter","message":"Idempotency key already '
     'used"}', *GARBAGE),
    ("Brevo", "http", 401, "", '{"code":"unauthorized","message":"Key not found"}', *NO_LOGIN),
    ("Brevo", "http", 402, "", '{"code":"not_enough_credits","message":"You do not have enough '
     'credits"}', *NO_QUOTA),
    ("Brevo", "http", 403, "", '{"code":"permission_denied","message":"Unable to send email. '
     'Your SMTP account is not yet activated. Please contact us to request activation"}',
     *BLOCKED_HOST),
    ("Brevo", "http", 403, "", '{"code":"account_under_validation","message":"Your account is '
     'under validation"}', *BLOCKED_HOST),
    ("Brevo", "http", 429, "", '{"code":"too_many_requests","message":"Rate limit exceeded"}',
     *SLOWER),
    # Mailjet: dev.mailjet.com, Send API v3.1 errors
    ("Mailjet", "http", 401, "", '{"ErrorIdentifier":"e3","ErrorCode":"mj-0001","StatusCode":401,'
     '"ErrorMessage":"API key authentication/authorization failure."}', *NO_LOGIN),
    ("Mailjet", "http", 400, "", '{"Messages":[{"Status":"error",'
     '"Errors":[{"ErrorCode":"mj-0013","StatusCode":400,"ErrorMessage":"\\"a@\\" is an invalid '
     'email address.","ErrorRelatedTo":["To[0].Email"]}]}]}', *DEAD),
    ("Mailjet", "http", 403, "", '{"Messages":[{"Errors":[{"ErrorCode":"send-0008",'
     '"StatusCode":403,"ErrorMessage":"\\"s@example.org\\" is not an authorized sender email '
     'address for your account.","ErrorRelatedTo":["From"]}],"Status":"error"}]}', *SENDER),
    ("Mailjet", "http", 400, "", '{"Messages":[{"Status":"error",'
     '"Errors":[{"ErrorCode":"send-0003","StatusCode":400,"ErrorMessage":"At least '
     '\\"HTMLPart\\", \\"TextPart\\" or \\"TemplateID\\" must be provided."}]}]}', *CONTENT),
    ("Mailjet", "http", 413, "", '{"ErrorMessage":"Payload too large"}', *CONTENT),
    ("Mailjet", "http", 429, "", '{"ErrorMessage":"Too Many Requests"}', *SLOWER),
    # Postmark: postmarkapp.com/developer/api/overview, error codes
    ("Postmark", "http", 422, "", "{\"ErrorCode\":300,\"Message\":\"Invalid 'To' address: "
     "'a@example'.\"}", *DEAD),
    ("Postmark", "http", 422, "", "{\"ErrorCode\":300,\"Message\":\"Error parsing 'To': Illegal "
     "email domain 'example' in address 'a@example'.\"}", *DEAD),
    ("Postmark", "http", 422, "", "{\"ErrorCode\":300,\"Message\":\"Invalid 'From' address: "
     "'s@example'.\"}", *SENDER),
    ("Postmark", "http", 422, "", "{\"ErrorCode\":400,\"Message\":\"The 'From' address you "
     'supplied (s@example.org) is not a Sender Signature on your account."}', *SENDER),
    ("Postmark", "http", 422, "", '{"ErrorCode":406,"Message":"You tried to send to a recipient '
     "that has been marked as inactive. Found inactive addresses: a@example.org. Inactive "
     "recipients are ones that have generated a hard bounce, a spam complaint, or a manual "
     'suppression."}', *UNWANTED),
    ("Postmark", "http", 422, "", '{"ErrorCode":405,"Message":"You are not allowed to send: you '
     'have run out of credits."}', *NO_QUOTA),
    ("Postmark", "http", 422, "", '{"ErrorCode":412,"Message":"While your account is pending '
     "approval, all recipient addresses must share the same domain as the 'From' address.\"}",
     *BLOCKED_HOST),
    ("Postmark", "http", 422, "", '{"ErrorCode":413,"Message":"Your account may not send '
     'emails."}', *BLOCKED_HOST),
    ("Postmark", "http", 422, "", '{"ErrorCode":411,"Message":"Forbidden attachment type"}',
     *CONTENT),
    ("Postmark", "http", 401, "", '{"ErrorCode":10,"Message":"The Server Token you provided in '
     'the X-Postmark-Server-Token request header was invalid."}', *NO_LOGIN),
    ("Postmark", "http", 429, "", '{"ErrorCode":429,"Message":"Rate Limit Exceeded"}', *SLOWER),
    ("Postmark", "http", 503, "", '{"ErrorCode":100,"Message":"The Postmark API is offline for '
     'maintenance."}', *GARBAGE),
    # SendGrid: twilio.com/docs/sendgrid, errors of v3 Mail Send
    ("SendGrid", "http", 202, "", "", *SENT),
    ("SendGrid", "http", 400, "", '{"errors":[{"message":"Does not contain a valid address.",'
     '"field":"personalizations.0.to.0.email","help":null}]}', *DEAD),
    ("SendGrid", "http", 400, "", '{"errors":[{"message":"The from email does not contain a '
     'valid address.","field":"from.email"}]}', *SENDER),
    ("SendGrid", "http", 403, "", '{"errors":[{"message":"The from address does not match a '
     'verified Sender Identity. Mail cannot be sent until this error is resolved.",'
     '"field":"from"}]}', *SENDER),
    ("SendGrid", "http", 401, "", '{"errors":[{"message":"The provided authorization grant is '
     'invalid, expired, or revoked","field":null}]}', *NO_LOGIN),
    ("SendGrid", "http", 401, "", '{"errors":[{"message":"Maximum credits exceeded","field":null,'
     '"help":null}]}', *NO_QUOTA),
    ("SendGrid", "http", 401, "", '{"errors":[{"message":"Authenticated user is not authorized '
     'to send mail","field":null}]}', *NO_LOGIN),
    ("SendGrid", "http", 400, "", '{"errors":[{"message":"The subject is required.",'
     '"field":"subject"}]}', *CONTENT),
    ("SendGrid", "http", 413, "", '{"errors":[{"message":"Payload too large"}]}', *CONTENT),
    ("SendGrid", "http", 429, "", '{"errors":[{"message":"too many requests"}]}', *SLOWER),
    # Mailgun: documentation.mailgun.com
    ("Mailgun", "http", 400, "", '{"message":"to parameter is not a valid address. please check '
     'documentation"}', *DEAD),
    ("Mailgun", "http", 400, "", "{\"message\":\"'to' parameter is not a valid address. please "
     'check documentation"}', *DEAD),
    ("Mailgun", "http", 400, "", '{"message":"from parameter is not a valid address. please '
     'check documentation"}', *SENDER),
    ("Mailgun", "http", 404, "", '{"message":"Domain not found: example.org"}', *SENDER),
    ("Mailgun", "http", 401, "", "Forbidden", *NO_LOGIN),
    ("Mailgun", "http", 403, "", '{"message":"Domain sandbox1.mailgun.org is not allowed to '
     'send: Sandbox subdomains are for test purposes only."}', *SENDER),
    ("Mailgun", "http", 403, "", '{"message":"Domain example.org is not allowed to send: The '
     'domain is unverified and requires DNS configuration."}', *SENDER),
    ("Mailgun", "http", 403, "", '{"message":"Your account is disabled"}', *BLOCKED_HOST),
    ("Mailgun", "http", 429, "", '{"message":"Domain example.org has exceeded its hourly limit"}',
     *SPENT),
    ("Mailgun", "http", 413, "", '{"message":"Attachment size is too large. Max 25MB"}', *CONTENT),
    # SparkPost: support.sparkpost.com, extended error codes
    ("SparkPost", "http", 400, "", '{"errors":[{"message":"Message generation rejected",'
     '"description":"recipient address suppressed due to customer policy","code":"1902"}]}',
     *UNWANTED),
    ("SparkPost", "http", 422, "", '{"errors":[{"message":"invalid data format/type",'
     '"description":"Invalid recipient address","code":"1300"}]}', *DEAD),
    ("SparkPost", "http", 400, "", '{"errors":[{"message":"Invalid domain",'
     '"description":"Unconfigured Sending Domain <example.org>","code":"7001"}]}', *SENDER),
    ("SparkPost", "http", 401, "", '{"errors":[{"message":"Unauthorized."}]}', *NO_LOGIN),
    ("SparkPost", "http", 403, "", '{"errors":[{"message":"Forbidden."}]}', *POLICY),
    ("SparkPost", "http", 403, "", '{"errors":[{"message":"Account has been suspended"}]}',
     *BLOCKED_HOST),
    ("SparkPost", "http", 420, "", '{"errors":[{"message":"Exceed Sending Limit (daily)",'
     '"code":"2102"}]}', *SPENT),
    ("SparkPost", "http", 429, "", '{"errors":[{"message":"Too many requests"}]}', *SLOWER),
    # Amazon SES v2: docs.aws.amazon.com/ses/latest/APIReference-V2, its errors
    ("Amazon SES", "http", 400, "", "Email address is not verified. The following identities "
     "failed the check in region EU-WEST-1: s@example.org MessageRejected", *SENDER),
    ("Amazon SES", "http", 400, "", "Address blacklisted. MessageRejected", *UNWANTED),
    ("Amazon SES", "http", 400, "", "Sending suspended for this account. For more information, "
     "please check the inbox of the email address associated with your AWS account. "
     "MessageRejected", *BLOCKED_HOST),
    ("Amazon SES", "http", 400, "", "The sending domain isn't verified. "
     "MailFromDomainNotVerifiedException", *SENDER),
    ("Amazon SES", "http", 400, "", "Email sending for the account was disabled. "
     "SendingPausedException", *BLOCKED_HOST),
    ("Amazon SES", "http", 400, "", "The account's ability to send has been permanently "
     "restricted. AccountSuspendedException", *BLOCKED_HOST),
    ("Amazon SES", "http", 400, "", "There are too many instances of the resource. "
     "LimitExceededException", *NO_QUOTA),
    ("Amazon SES", "http", 429, "", "Maximum sending rate exceeded. TooManyRequestsException",
     *SLOWER),
    ("Amazon SES", "http", 400, "", "Maximum sending rate exceeded. ThrottlingException", *SLOWER),
    ("Amazon SES", "http", 429, "", "Daily message quota exceeded. TooManyRequestsException",
     *SPENT),
    ("Amazon SES", "http", 400, "", "Daily message quota exceeded. ThrottlingException", *NO_QUOTA),
    ("Amazon SES", "http", 403, "", "The security token included in the request is invalid. "
     "InvalidClientTokenId", *NO_LOGIN),
    ("Amazon SES", "http", 403, "", "The request signature we calculated does not match the "
     "signature you provided. SignatureDoesNotMatch", *NO_LOGIN),
    ("Amazon SES", "http", 403, "", "User: arn:aws:iam::1:user/u is not authorized to perform: "
     "ses:SendEmail AccessDeniedException", *NO_LOGIN),
    ("Amazon SES", "http", 400, "", "The security token included in the request is expired "
     "ExpiredTokenException", *NO_LOGIN),
    ("Amazon SES", "http", 500, "", "InternalFailure", *GARBAGE),
    # Mailtrap: docs.mailtrap.io
    ("Mailtrap", "http", 401, "", '{"errors":["Unauthorized"]}', *NO_LOGIN),
    ("Mailtrap", "http", 403, "", '{"success":false,"errors":["Sending from domain example.org '
     'is not allowed"]}', *SENDER),
    ("Mailtrap", "http", 400, "", "{\"success\":false,\"errors\":[\"'to' address is invalid\"]}",
     *DEAD),
    ("Mailtrap", "http", 400, "", "{\"success\":false,\"errors\":[\"'from' is required\"]}",
     *SENDER),
    ("Mailtrap", "http", 400, "", "{\"success\":false,\"errors\":[\"'subject' is required\"]}",
     *CONTENT),
    ("Mailtrap", "http", 403, "", '{"success":false,"errors":["Sending is suspended, please '
     'contact support"]}', *BLOCKED_HOST),
    ("Mailtrap", "http", 429, "", '{"success":false,"errors":["The daily email limit has been '
     'reached"]}', *SPENT),
    # MailerSend: developers.mailersend.com
    ("MailerSend", "http", 202, "", "", *SENT),
    ("MailerSend", "http", 422, "", '{"message":"The to.0.email must be a valid email address.",'
     '"errors":{"to.0.email":["The to.0.email must be a valid email address."]}}', *DEAD),
    ("MailerSend", "http", 422, "", '{"message":"The from.email domain must be verified in your '
     'account to send emails. #MS42207","errors":{"from.email":["The from.email domain must be '
     'verified in your account to send emails. #MS42207"]}}', *SENDER),
    ("MailerSend", "http", 422, "", '{"message":"You have reached trial account unique '
     'recipients limit. #MS42225"}', *NO_QUOTA),
    ("MailerSend", "http", 401, "", '{"message":"Unauthenticated."}', *NO_LOGIN),
    ("MailerSend", "http", 429, "", '{"message":"Too Many Attempts."}', *SLOWER),
    # Unisender Go: godocs.unisender.ru
    ("Unisender Go", "http", 400, "", '{"status":"error","code":204,"message":"Error ID:1. No '
     'valid recipients","failed_emails":{"a@example.org":"invalid"}}', *DEAD),
    ("Unisender Go", "http", 400, "", '{"status":"error","code":204,"message":"Error ID:1. No '
     'valid recipients","failed_emails":{"a@example.org":"unsubscribed"}}', *UNWANTED),
    ("Unisender Go", "http", 400, "", '{"status":"error","code":204,"message":"Error ID:1. No '
     'valid recipients","failed_emails":{"a@example.org":"permanent_unavailable"}}', *UNWANTED),
    ("Unisender Go", "http", 401, "", '{"status":"error","code":102,"message":"Error ID:1. API '
     'key not found"}', *NO_LOGIN),
    ("Unisender Go", "http", 403, "", '{"status":"error","code":901,"message":"Error ID:1. Your '
     'account is blocked"}', *BLOCKED_HOST),
    ("Unisender Go", "http", 400, "", '{"status":"error","code":223,"message":"Error ID:1. '
     'Specified from_email is not verified"}', *SENDER),
    # Scaleway: www.scaleway.com/en/developers/api/transactional-email
    ("Scaleway", "http", 403, "", '{"details":[{"action":"write","resource":"email"}],'
     '"message":"insufficient permissions","type":"permissions_denied"}', *NO_LOGIN),
    ("Scaleway", "http", 401, "", '{"message":"authentication is denied","method":"api_key",'
     '"reason":"invalid_argument","type":"denied_authentication"}', *NO_LOGIN),
    ("Scaleway", "http", 403, "", '{"message":"quota(s) exceeded for this resource",'
     '"type":"quotas_exceeded"}', *NO_QUOTA),
    ("Scaleway", "http", 400, "", '{"details":[{"argument_name":"to[0].email",'
     '"help_message":"invalid email","reason":"format"}],"message":"invalid argument(s)",'
     '"type":"invalid_arguments"}', *DEAD),
    ("Scaleway", "http", 412, "", '{"message":"precondition is not respected",'
     '"precondition":"domain not checked","type":"precondition_failed"}', *SENDER),
    ("Scaleway", "http", 451, "", '{"message":"the content was flagged as spam"}', *POLICY),
    # any, and what anymail makes of a recipient's status
    ("anymail", "http", 422, "", "recipient invalid, says the provider", *DEAD),
    ("anymail", "http", 422, "", "recipient rejected by the provider", *UNWANTED),
    ("anymail", "http", 400, "", "recipient invalid, says the provider: check sender, subject "
     "and to", *DEAD),
    ("anymail", "http", 400, "", "recipient rejected by the provider: invalid 'to' address",
     *UNWANTED),
    ("any", "http", 202, "", "", *SENT),
    ("any", "http", 302, "", "Found", *GARBAGE),
    ("any", "http", 401, "", "", *NO_LOGIN),
    ("any", "http", 402, "", "", *NO_QUOTA),
    ("any", "http", 403, "", "", *POLICY),
    ("any", "http", 407, "", "Proxy Authentication Required", *NO_RELAY),
    ("any", "http", 408, "", "", *LATER),
    ("any", "http", 409, "", "", *GARBAGE),
    ("any", "http", 413, "", "", *CONTENT),
    ("any", "http", 425, "", "", *LATER),
    ("any", "http", 429, "", "", *SLOWER),
    ("any", "http", 429, "", "your API key is rate limited", *SLOWER),
    ("any", "http", 500, "", '{"message":"Invalid `to` field"}', *GARBAGE),
    ("any", "http", 502, "", "Bad Gateway", *GARBAGE),
    ("any", "http", 503, "", "Service Unavailable", *GARBAGE),
    ("any", "http", None, "", "Read timed out.", *LATE),
    ("any", "http", None, "", "connection lost", *LOST),
    ("any", "http", None, "", "unreadable answer: not JSON", *GARBAGE),
    ("any", "http", 422, "", "invalid address", *UNKNOWN),
    ("any", "http", 422, "", "not sent, says the provider", *UNKNOWN),
    ("any", "http", 400, "", "", *UNKNOWN),
    ("any", "http", 404, "", "Not Found", *UNKNOWN),
    ("any", "http", 418, "", "I'm a teapot", *UNKNOWN),
]  # fmt: skip
