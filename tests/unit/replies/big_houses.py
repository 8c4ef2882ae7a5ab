"""Gmail, Yahoo, Outlook.com, Exchange Online, iCloud: replies as their public pages give them."""

from __future__ import annotations

from .meanings import (
    BLOCKED_HOST,
    CONTENT,
    DEAD,
    FULL,
    LATER,
    NO_LOGIN,
    NO_RELAY,
    NO_SENDER,
    POLICY,
    QUOTA,
    SENDER,
    SLOWER,
    UNWANTED,
    Row,
)

BIG_HOUSES: list[Row] = [
    # Gmail: support.google.com/a/answer/3221692 and 3726730
    ("Gmail", "rcpt", 550, "5.1.1", "5.1.1 The email account that you tried to reach does not "
     "exist. Please try 5.1.1 double-checking the recipient's email address for typos or 5.1.1 "
     "unnecessary spaces. Learn more at 5.1.1 https://support.google.com/mail/?p=NoSuchUser - "
     "gsmtp", *DEAD),
    ("Gmail", "rcpt", 550, "5.2.1", "5.2.1 The email account that you tried to reach is "
     "inactive. Learn more at https://support.google.com/mail/?p=DisabledUser - gsmtp", *DEAD),
    ("Gmail", "rcpt", 550, "5.2.1", "5.2.1 The email account that you tried to reach is "
     "disabled. - gsmtp", *DEAD),
    ("Gmail", "rcpt", 552, "5.2.2", "5.2.2 The recipient's inbox is out of storage space and "
     "inactive. Please 5.2.2 direct the recipient to 5.2.2 "
     "https://support.google.com/mail/?p=OverQuotaPerm - gsmtp", *DEAD),
    ("Gmail", "rcpt", 553, "5.1.2", "5.1.2 We weren't able to find the recipient domain. Please "
     "check for any spelling errors. - gsmtp", *DEAD),
    ("Gmail", "rcpt", 553, "5.1.3", "5.1.3 The recipient address <a@example..org> is not a valid "
     "RFC 5321 address. - gsmtp", *DEAD),
    ("Gmail", "rcpt", 452, "4.2.2", "4.2.2 The recipient's inbox is out of storage space. Please "
     "direct the recipient to https://support.google.com/mail/?p=OverQuotaTemp - gsmtp", *FULL),
    ("Gmail", "rcpt", 552, "5.2.2", "5.2.2 The email account that you tried to reach is over "
     "quota. - gsmtp", *FULL),
    ("Gmail", "rcpt", 550, "5.2.1", "5.2.1 The user you are trying to contact is receiving mail "
     "at a rate that 5.2.1 prevents additional messages from being delivered. - gsmtp", *SLOWER),
    ("Gmail", "rcpt", 450, "4.2.1", "4.2.1 The user you are trying to contact is receiving email "
     "too quickly. Please resend your message at a later time. - gsmtp", *SLOWER),
    ("Gmail", "dot", 421, "4.7.28", "4.7.28 Gmail has detected an unusual rate of unsolicited "
     "mail originating 4.7.28 from your IP address. To protect our users from spam, mail has "
     "been temporarily rate limited. - gsmtp", *SLOWER),
    ("Gmail", "dot", 421, "4.7.26", "4.7.26 Your email has been rate limited because it is "
     "unauthenticated. Gmail requires all senders to authenticate with either SPF or DKIM. - "
     "gsmtp", *SLOWER),
    ("Gmail", "dot", 421, "4.7.32", "4.7.32 Your email has been rate limited because the From: "
     "header in this message isn't aligned. - gsmtp", *SLOWER),
    ("Gmail", "dot", 421, "4.7.23", "4.7.23 The sending IP address for this message doesn't have "
     "a PTR record. - gsmtp", *SLOWER),
    ("Gmail", "dot", 421, "5.7.32", "5.7.32 Your email has been rate limited: From header not "
     "aligned. - gsmtp", *POLICY),
    ("Gmail", "dot", 451, "4.4.2", "4.4.2 Timeout - closing connection. - gsmtp", *LATER),
    ("Gmail", "data", 421, "4.3.0", "4.3.0 Temporary System Problem. Try again later. - gsmtp",
     *LATER),
    ("Gmail", "rcpt", 452, "4.5.3", "4.5.3 Your message has too many recipients. - gsmtp", *LATER),
    ("Gmail", "dot", 550, "5.7.26", "5.7.26 Your email has been blocked because the sender is "
     "unauthenticated. 5.7.26 Gmail requires all senders to authenticate with either SPF or "
     "DKIM. - gsmtp", *POLICY),
    ("Gmail", "dot", 550, "5.7.26", "5.7.26 Unauthenticated email from example.org is not "
     "accepted due to 5.7.26 domain's DMARC policy. - gsmtp", *POLICY),
    ("Gmail", "dot", 550, "5.7.1", "5.7.1 [192.0.2.1      19] Gmail has detected that this "
     "message is likely 5.7.1 unsolicited mail. To reduce the amount of spam sent to Gmail, this "
     "5.7.1 message has been blocked. - gsmtp", *POLICY),
    ("Gmail", "dot", 550, "5.7.25", "5.7.25 The IP address sending this message does not have a "
     "PTR record setup. - gsmtp", *POLICY),
    ("Gmail", "dot", 550, "5.7.40", "5.7.40 Our system has detected that this message does not "
     "meet DMARC policy. - gsmtp", *POLICY),
    ("Gmail", "dot", 550, "5.7.1", "5.7.1 This message violates example.org email policy. - gcdp "
     "12-20020a - gsmtp", *UNWANTED),
    ("Gmail", "dot", 552, "5.7.0", "5.7.0 This message was blocked because its content presents "
     "a potential 5.7.0 security issue. - gsmtp", *POLICY),
    ("Gmail", "dot", 552, "5.3.4", "5.3.4 Your message exceeded Google's message size limits. - "
     "gsmtp", *CONTENT),
    ("Gmail", "dot", 554, "5.6.0", "5.6.0 Mail message is malformed. Not accepted. - gsmtp",
     *CONTENT),
    ("Gmail", "dot", 550, "5.4.5", "5.4.5 Daily user sending limit exceeded. For more "
     "information on Gmail sending limits go to https://support.google.com/a/answer/166852 - "
     "gsmtp", *QUOTA),
    ("Gmail", "dot", 550, "5.7.1", "5.7.1 Email quota exceeded. - gsmtp", *QUOTA),
    ("Gmail", "mail", 530, "5.7.0", "5.7.0 Authentication Required. For more information, go to "
     "https://support.google.com/mail/?p=WantAuthError - gsmtp", *NO_LOGIN),
    ("Gmail", "auth", 535, "5.7.8", "5.7.8 Username and Password not accepted. - gsmtp", *NO_LOGIN),
    ("Gmail", "mail", 553, "5.1.7", "5.1.7 The sender address <s@example..org> is not a valid "
     "RFC 5321 address. - gsmtp", *NO_SENDER),
    # Yahoo and AOL: senders.yahooinc.com/smtp-error-codes
    ("Yahoo", "dot", 552, "", "1 Requested mail action aborted, mailbox not found", *DEAD),
    ("Yahoo", "dot", 554, "", "30 Sorry, your message to a@example.org cannot be delivered. This "
     "mailbox is disabled (554.30).", *DEAD),
    ("Yahoo", "dot", 554, "", "delivery error: dd This user doesn't have a yahoo.com account "
     "(a@example.org) [0] - mta4190.mail.gq1.yahoo.com", *DEAD),
    ("Yahoo", "dot", 554, "", "delivery error: dd Sorry, your message to a@example.org cannot be "
     "delivered. This account has been disabled or discontinued [#102].", *DEAD),
    ("Yahoo", "dot", 554, "", "delivery error: dd a@example.org is no longer valid. [-20] - "
     "mta1037.mail.ne1.yahoo.com", *DEAD),
    ("AOL", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: Recipient address rejected: aol.com",
     *DEAD),
    ("Yahoo", "rcpt", 552, "5.2.2", "5.2.2 user is over quota", *FULL),
    ("Yahoo", "mail", 421, "4.7.0", "4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred "
     "due to unexpected volume or user complaints - 4.16.55.1; see "
     "https://postmaster.yahooinc.com/error-codes", *SLOWER),
    ("Yahoo", "dot", 421, "4.7.1", "4.7.1 [TS03] All messages from 192.0.2.1 will be permanently "
     "deferred", *SLOWER),
    ("Yahoo", "rcpt", 450, "", "User is receiving mail too quickly", *SLOWER),
    ("Yahoo", "data", 421, "", "Max message per connection reached, closing transmission channel",
     *LATER),
    ("Yahoo", "rcpt", 451, "", "Message temporarily deferred due to unresolvable RFC.5321 from "
     "domain.", *SLOWER),
    ("Yahoo", "mail", 553, "5.7.2", "5.7.2 [TSS09] All messages from 192.0.2.1 will be "
     "permanently deferred; Retrying will NOT succeed.", *NO_SENDER),
    ("Yahoo", "rcpt", 553, "5.7.2", "5.7.2 [TSS11] All messages from 192.0.2.1 will be "
     "permanently deferred; Retrying will NOT succeed.", *POLICY),
    ("Yahoo", "rcpt", 553, "5.7.1", "5.7.1 [BL21] Connections will not be accepted from "
     "192.0.2.1, because the ip is in Spamhaus's list; see "
     "http://postmaster.yahoo.com/550-bl23.html", *POLICY),
    ("Yahoo", "dot", 554, "", "Message not allowed - [PH01] Email not accepted for policy "
     "reasons. Please visit https://postmaster.yahooinc.com/error-codes", *POLICY),
    ("Yahoo", "dot", 554, "", "[GL01]", *POLICY),
    ("Yahoo", "dot", 554, "5.7.9", "5.7.9 Message not accepted for policy reasons. See "
     "https://postmaster.yahooinc.com/error-codes", *POLICY),
    ("Yahoo", "dot", 554, "", "Message not allowed - Headers are not RFC compliant[291]", *CONTENT),
    ("Yahoo", "rcpt", 550, "", "relaying denied for <a@example.org>", *POLICY),
    ("AOL", "rcpt", 554, "5.7.1", "5.7.1 : (HVU:B1) "
     "http://postmaster.info.aol.com/errors/554hvub1.html", *POLICY),
    # Outlook.com: sendersupport.olc.protection.outlook.com/pm/troubleshooting.aspx
    ("Outlook.com", "rcpt", 550, "5.5.0", "5.5.0 Requested action not taken: mailbox unavailable "
     "(S2017062302). [AM7EUR03FT041.eop-EUR03.prod.protection.outlook.com]", *DEAD),
    ("Outlook.com", "dot", 550, "5.5.0", "5.5.0 Requested action not taken: mailbox unavailable",
     *DEAD),
    ("Outlook.com", "rcpt", 550, "", "Requested action not taken: mailbox unavailable", *DEAD),
    ("Outlook.com", "rcpt", 552, "5.2.2", "5.2.2 <a@example.org>: Recipient address rejected: "
     "mailbox full", *FULL),
    ("Outlook.com", "rcpt", 421, "", "RP-001 (BAY004-MC1F4) Unfortunately, some messages from "
     "192.0.2.1 weren't sent. The mail server IP has exceeded the rate limit allowed.", *SLOWER),
    ("Outlook.com", "mail", 451, "4.7.650", "4.7.650 The mail server [192.0.2.1] has been "
     "temporarily rate limited due to IP reputation. For e-mail delivery information, see "
     "https://postmaster.live.com (S775)", *SLOWER),
    ("Outlook.com", "rcpt", 451, "4.7.500", "4.7.500 Server busy. Please try again later from "
     "[192.0.2.1]. (AS761)", *SLOWER),
    ("Outlook.com", "mail", 550, "5.7.1", "5.7.1 Unfortunately, messages from [192.0.2.1] "
     "weren't sent. Please contact your Internet service provider since part of their network is "
     "on our block list (S3140).", *BLOCKED_HOST),
    ("Outlook.com", "rcpt", 550, "5.7.1", "5.7.1 Unfortunately, messages from [192.0.2.1] "
     "weren't sent. Please contact your Internet service provider since part of their network is "
     "on our block list (S3150).", *POLICY),
    ("Outlook.com", "rcpt", 550, "", "SC-001 (SNT004-MC4F53) Unfortunately, messages from "
     "192.0.2.1 weren't sent. Please contact your Internet service provider since part of their "
     "network is on our block list.", *POLICY),
    ("Outlook.com", "rcpt", 550, "", "DY-001 (COL004-MC1F1) Mail rejected by Outlook.com for "
     "policy reasons. We generally do not accept email from dynamic IP's.", *POLICY),
    ("Outlook.com", "dot", 550, "", "OU-002 (BAY004-MC2F10) Unfortunately, messages weren't "
     "sent. Reasons for rejection may be related to content with spam-like characteristics.",
     *POLICY),
    ("Outlook.com", "dot", 550, "5.7.515", "5.7.515 Access denied, sending domain example.org "
     "does not meet the required authentication level.", *POLICY),
    ("Outlook.com", "dot", 550, "5.7.509", "5.7.509 Access denied, sending domain example.org "
     "does not pass DMARC verification and has a DMARC policy of reject.", *POLICY),
    # Exchange Online: learn.microsoft.com, non-delivery reports in Exchange Online
    ("Exchange Online", "rcpt", 550, "5.4.1", "5.4.1 Recipient address rejected: Access denied. "
     "For more information see https://aka.ms/EXOSmtpErrors [AS(201806281)]", *DEAD),
    ("Exchange Online", "rcpt", 550, "5.1.10", "5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient "
     "a@example.org not found by SMTP address lookup", *DEAD),
    ("Exchange Online", "dot", 550, "5.1.1", "5.1.1 RESOLVER.ADR.ExRecipNotFound; not found",
     *DEAD),
    ("Exchange Online", "dot", 550, "5.1.351", "5.1.351 Remote server returned unknown recipient "
     "or mailbox unavailable -> 550 5.1.1 User unknown", *DEAD),
    ("Exchange Online", "dot", 550, "5.4.310", "5.4.310 DNS domain example.org does not exist "
     "[Message=InfoDomainNonexistent]", *DEAD),
    ("Exchange Online", "dot", 554, "5.2.2", "5.2.2 mailbox full; "
     "STOREDRV.Deliver.Exception:QuotaExceededException.MapiExceptionShutoffQuotaExceeded", *FULL),
    ("Exchange Online", "dot", 432, "4.3.2", "4.3.2 STOREDRV.Deliver; recipient thread limit "
     "exceeded", *SLOWER),
    ("Exchange Online", "dot", 550, "5.2.122", "5.2.122 The recipient has exceeded their limit "
     "for the number of messages they can receive per hour.", *SLOWER),
    ("Exchange Online", "dot", 550, "5.2.121", "5.2.121 RESOLVER.RCPT.Rate; the recipient's per "
     "hour message receive limit from specific sender exceeded", *SLOWER),
    ("Exchange Online", "rcpt", 451, "4.7.700", "4.7.700 PFA agent busy, please try again.",
     *SLOWER),
    ("Exchange Online", "data", 451, "4.4.3", "4.4.3 Temporary server error. Please try again "
     "later ATTR18", *LATER),
    ("Exchange Online", "rcpt", 550, "5.7.606", "5.7.606 Access denied, banned sending IP "
     "[192.0.2.1]. To request removal from this list please visit https://sender.office.com/",
     *POLICY),
    ("Exchange Online", "rcpt", 550, "5.7.513", "5.7.513 Service unavailable, Client host "
     "[192.0.2.1] blocked by example.org using Customer Block list (AS16012607)", *UNWANTED),
    ("Exchange Online", "rcpt", 550, "5.7.504", "5.7.504 [a@example.org]: Recipient address "
     "rejected: Access denied", *UNWANTED),
    ("Exchange Online", "dot", 550, "5.7.133", "5.7.133 "
     "RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required; Delivery restriction "
     "check failed because the sender was not authenticated when sending to this group", *UNWANTED),
    ("Exchange Online", "dot", 550, "5.7.124", "5.7.124 RESOLVER.RST.NotAuthorized; sender not "
     "in allowed-senders list", *UNWANTED),
    ("Exchange Online", "dot", 550, "5.7.1", "5.7.1 TRANSPORT.RULES.RejectMessage; the message "
     "was rejected by organization policy", *UNWANTED),
    ("Exchange Online", "dot", 550, "5.7.23", "5.7.23 The message was rejected because of Sender "
     "Policy Framework violation -> 550 5.7.23 SPF failed", *POLICY),
    ("Exchange Online", "rcpt", 550, "5.4.1", "5.4.1 Relay Access Denied", *POLICY),
    ("Exchange Online", "rcpt", 550, "5.7.64", "5.7.64 TenantAttribution; Relay Access Denied "
     "[DB5EUR01FT048.eop-EUR01.prod.protection.outlook.com]", *POLICY),
    ("Exchange Online", "dot", 550, "5.7.708", "5.7.708 Service unavailable. Access denied, "
     "traffic not accepted from this IP.", *POLICY),
    ("Exchange Online", "dot", 554, "5.2.252", "5.2.252 SendAsDenied; s@example.org not allowed "
     "to send as t@example.org", *SENDER),
    ("Exchange Online", "dot", 550, "5.7.60", "5.7.60 SMTP; Client does not have permissions to "
     "send as this sender", *SENDER),
    ("Exchange Online", "rcpt", 501, "5.1.8", "5.1.8 Access denied, bad outbound sender. For "
     "more information please go to https://aka.ms/bounce-5.1.8", *SENDER),
    ("Exchange Online", "dot", 550, "5.1.90", "5.1.90 Your message can't be sent because you've "
     "reached your daily limit for message recipients", *QUOTA),
    ("Exchange Online", "dot", 550, "5.7.233", "5.7.233 Your message can't be sent because your "
     "tenant exceeded its daily limit for sending email to external recipients", *QUOTA),
    ("Exchange Online", "dot", 550, "5.2.2", "5.2.2 Submission quota exceeded", *QUOTA),
    ("Exchange Online", "dot", 552, "5.3.4", "5.3.4 Message size exceeds fixed maximum message "
     "size", *CONTENT),
    ("Exchange Online", "dot", 550, "5.6.11", "5.6.11 SMTPSEND.BareLinefeedsAreIllegal; message "
     "contains bare linefeeds", *CONTENT),
    ("Exchange Online", "mail", 530, "5.7.57", "5.7.57 Client not authenticated to send mail. "
     "[AM0PR01CA0112.eurprd01.prod.exchangelabs.com]", *NO_LOGIN),
    # iCloud: support.apple.com/en-us/102322
    ("iCloud", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: inactive email address", *DEAD),
    ("iCloud", "rcpt", 550, "5.1.1", "5.1.1 unknown or illegal alias: a@example.org", *DEAD),
    ("iCloud", "rcpt", 550, "5.1.6", "5.1.6 recipient no longer on server: a@example.org", *DEAD),
    ("iCloud", "rcpt", 552, "5.2.2", "5.2.2 <a@example.org>: user is over quota", *FULL),
    ("iCloud", "rcpt", 421, "4.7.1", "4.7.1 Messages to a@example.org deferred due to excessive "
     "volume. Try again later - https://support.apple.com/en-us/HT204137", *SLOWER),
    ("iCloud", "dot", 550, "5.7.1", "5.7.1 [CS01] Message rejected due to local policy. Please "
     "visit https://support.apple.com/en-us/HT204137", *POLICY),
    ("iCloud", "dot", 554, "5.7.1", "5.7.1 [HME1] This message was blocked for failing both SPF "
     "and DKIM authentication checks.", *POLICY),
    ("iCloud", "dot", 554, "", "[HM08] Message rejected due to local policy. Please visit "
     "https://support.apple.com/en-us/HT204137", *POLICY),
    ("iCloud", "dot", 554, "", "[CS02]", *POLICY),
    ("iCloud", "rcpt", 550, "5.7.0", "5.7.0 Blocked - see "
     "https://support.proofpoint.com/dnsbl-lookup.cgi?ip=192.0.2.1", *POLICY),
    ("iCloud", "rcpt", 550, "5.7.1", "5.7.1 Mail from IP 192.0.2.1 was rejected due to listing "
     "in Spamhaus SBL.", *POLICY),
    ("iCloud", "rcpt", 554, "5.7.1", "5.7.1 <a@example.org>: Relay access denied", *POLICY),
    ("iCloud", "greeting", 554, "", "ms-smtpin-001.me.com ESMTP not accepting connections",
     *NO_RELAY),
]  # fmt: skip
