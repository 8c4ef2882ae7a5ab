"""Mail servers and gateways: replies as their source and documentation give them."""

from __future__ import annotations

from .meanings import (
    CONTENT,
    DEAD,
    FULL,
    GREY,
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

SERVERS: list[Row] = [
    # Postfix: its source and documentation
    ("Postfix", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: Recipient address rejected: User "
     "unknown in local recipient table", *DEAD),
    ("Postfix", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: Recipient address rejected: User "
     "unknown in virtual mailbox table", *DEAD),
    ("Postfix", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: Recipient address rejected: "
     'undeliverable address: unknown user: "a"', *DEAD),
    ("Postfix", "rcpt", 550, "5.1.2", "5.1.2 <a@example.org>: Recipient address rejected: Domain "
     "not found", *DEAD),
    ("Postfix", "rcpt", 550, "5.1.0", "5.1.0 <a@example.org>: Recipient address rejected: "
     "Mailbox does not exist", *DEAD),
    ("Postfix", "rcpt", 501, "5.1.3", "5.1.3 Bad recipient address syntax", *DEAD),
    ("Postfix", "rcpt", 556, "5.1.10", "5.1.10 <a@example.org>: Recipient address rejected: "
     "Domain example.org does not accept mail (nullMX)", *DEAD),
    ("Postfix", "dot", 552, "5.2.2", "5.2.2 <a@example.org>: maildir delivery failed: mailbox "
     "full", *FULL),
    ("Postfix", "rcpt", 452, "4.2.2", "4.2.2 <a@example.org>: Recipient address rejected: Quota "
     "exceeded (mailbox for user is full)", *FULL),
    ("Postfix", "rcpt", 552, "5.2.2", "5.2.2 <a@example.org>: Quota exceeded (mailbox for user "
     "is full)", *FULL),
    ("Postfix", "rcpt", 450, "4.2.0", "4.2.0 <a@example.org>: Recipient address rejected: "
     "Greylisted, see http://postgrey.schweikert.ch/help/example.org.html", *GREY),
    ("Postfix", "rcpt", 450, "4.1.1", "4.1.1 <a@example.org>: Recipient address rejected: "
     "unverified address: Address verification in progress", *LATER),
    ("Postfix", "rcpt", 450, "4.1.8", "4.1.8 <s@example.org>: Sender address rejected: Domain "
     "not found", *LATER),
    ("Postfix", "rcpt", 450, "4.7.1", "4.7.1 Client host rejected: cannot find your hostname, "
     "[192.0.2.1]", *SLOWER),
    ("Postfix", "rcpt", 451, "4.3.0", "4.3.0 <a@example.org>: Temporary lookup failure", *LATER),
    ("Postfix", "rcpt", 452, "4.3.1", "4.3.1 Insufficient system storage", *LATER),
    ("Postfix", "rcpt", 421, "4.7.0", "4.7.0 mx.example.org Error: too many connections from "
     "192.0.2.1", *SLOWER),
    ("Postfix", "rcpt", 452, "4.5.3", "4.5.3 Error: too many recipients", *LATER),
    ("Postfix", "rcpt", 554, "5.7.1", "5.7.1 Service unavailable; Client host [192.0.2.1] "
     "blocked using zen.spamhaus.org; https://www.spamhaus.org/query/ip/192.0.2.1", *POLICY),
    ("Postfix", "rcpt", 554, "5.7.1", "5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access "
     "denied", *POLICY),
    ("Postfix", "rcpt", 554, "5.7.1", "5.7.1 <a@example.org>: Relay access denied", *POLICY),
    ("Postfix", "rcpt", 504, "5.5.2", "5.5.2 <sender>: Helo command rejected: need "
     "fully-qualified hostname", *POLICY),
    ("Postfix", "rcpt", 550, "5.1.8", "5.1.8 <s@example.org>: Sender address rejected: Domain "
     "not found", *SENDER),
    ("Postfix", "rcpt", 553, "5.7.1", "5.7.1 <s@example.org>: Sender address rejected: not owned "
     "by user s", *POLICY),
    ("Postfix", "mail", 552, "5.3.4", "5.3.4 Message size exceeds fixed limit", *CONTENT),
    ("Postfix", "dot", 550, "5.6.0", "5.6.0 Lone CR or LF in headers; see "
     "https://www.postfix.org/smtp-smuggling.html", *CONTENT),
    ("Postfix", "dot", 554, "5.4.6", "5.4.6 Error: too many hops", *UNWANTED),
    ("Postfix", "rcpt", 550, "5.6.7", "5.6.7 <é@example.org>: Recipient address rejected: Must "
     "use SMTPUTF8", *UNWANTED),
    ("Postfix", "rcpt", 503, "5.5.1", "5.5.1 Error: need MAIL command", *NO_RELAY),
    ("Postfix", "mail", 530, "5.7.0", "5.7.0 Must issue a STARTTLS command first", *NO_LOGIN),
    # Exim: its default configuration, its source and cPanel's texts
    ("Exim", "rcpt", 550, "", "Unrouteable address", *DEAD),
    ("Exim", "rcpt", 550, "", "Unknown user", *DEAD),
    ("Exim", "rcpt", 550, "", "No Such User Here", *DEAD),
    ("Exim", "rcpt", 501, "", "<a@@example.org>: malformed address: @example.org> may not follow "
     "<a@", *DEAD),
    ("Exim", "rcpt", 451, "", "Temporary local problem - please try later", *LATER),
    ("Exim", "rcpt", 451, "", "Could not complete sender verify callout", *LATER),
    ("Exim", "rcpt", 452, "", "space shortage, please try later", *FULL),
    ("Exim", "rcpt", 421, "", "Too many concurrent SMTP connections; please try again later.",
     *SLOWER),
    ("Exim", "rcpt", 451, "", "Greylisted, please try again in 300 seconds", *GREY),
    ("Exim", "rcpt", 550, "", "relay not permitted", *POLICY),
    ("Exim", "rcpt", 550, "", "Administrative prohibition", *POLICY),
    ("Exim", "rcpt", 550, "", "rejected because 192.0.2.1 is in a black list at bl.example.org",
     *POLICY),
    ("Exim", "rcpt", 550, "", "Access denied - Invalid HELO name (See RFC2821 4.1.1.1)", *POLICY),
    ("Exim", "rcpt", 550, "", "Please turn on SMTP Authentication in your mail client. "
     "mail.example.org [192.0.2.1]:25 is not permitted to relay through this server without "
     "authentication.", *POLICY),
    ("Exim", "rcpt", 550, "", "Verification failed for <s@example.org> The mail server could not "
     "deliver mail to s@example.org. The account or domain may not exist, they may be "
     "blacklisted, or missing the proper dns entries. Sender verify failed", *POLICY),
    ("Exim", "rcpt", 550, "", "Sender verify failed", *SENDER),
    ("Exim", "dot", 550, "", "This message scored 8.1 spam points.", *POLICY),
    ("Exim", "dot", 552, "", "Message size exceeds maximum permitted", *CONTENT),
    ("Exim", "dot", 550, "", 'Syntax error: header line "From" is malformed', *CONTENT),
    ("cPanel", "dot", 550, "", '"The mail server detected your message as spam and has prevented '
     'delivery."', *POLICY),
    ("cPanel", "dot", 550, "", "Domain example.org has exceeded the max emails per hour (100/100 "
     "(100%)) allowed. Message discarded.", *QUOTA),
    # qmail and its kin
    ("qmail", "rcpt", 550, "5.1.1", "sorry, no mailbox here by that name (#5.1.1)", *DEAD),
    ("qmail", "rcpt", 511, "5.1.1", "sorry, no mailbox here by that name (#5.1.1 - chkuser)",
     *DEAD),
    ("qmail", "rcpt", 553, "", "sorry, mailbox name not allowed", *DEAD),
    ("qmail", "rcpt", 550, "5.1.1", "User over quota. (#5.1.1)", *FULL),
    ("qmail", "rcpt", 552, "5.2.2", "Mailbox is over quota (#5.2.2)", *FULL),
    ("qmail", "rcpt", 451, "4.3.0", "qq temporary problem (#4.3.0)", *LATER),
    ("qmail", "rcpt", 553, "5.7.1", "sorry, that domain isn't in my list of allowed rcpthosts "
     "(#5.7.1)", *POLICY),
    ("qmail", "rcpt", 553, "5.7.1", "sorry, your envelope sender is in my badmailfrom list "
     "(#5.7.1)", *POLICY),
    ("qmail", "dot", 552, "5.3.4", "sorry, that message size exceeds my databytes limit (#5.3.4)",
     *CONTENT),
    # Sendmail
    ("Sendmail", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>... User unknown", *DEAD),
    ("Sendmail", "rcpt", 550, "5.1.2", "5.1.2 <a@example.org>... Host unknown (Name server: "
     "example.org: host not found)", *DEAD),
    ("Sendmail", "rcpt", 550, "5.2.1", "5.2.1 <a@example.org>... Mailbox disabled for this "
     "recipient", *DEAD),
    ("Sendmail", "rcpt", 451, "4.7.1", "4.7.1 Greylisting in action, please come back in 00:04:59",
     *GREY),
    ("Sendmail", "data", 452, "4.4.5", "4.4.5 Insufficient disk space; try again later", *LATER),
    ("Sendmail", "rcpt", 451, "4.3.2", "4.3.2 Please try again later", *LATER),
    ("Sendmail", "rcpt", 550, "5.7.1", "5.7.1 <a@example.org>... Relaying denied. Proper "
     "authentication required.", *POLICY),
    ("Sendmail", "dot", 550, "5.7.1", "5.7.1 Command rejected", *POLICY),
    ("Sendmail", "mail", 553, "5.1.8", "5.1.8 <s@example.org>... Domain of sender address "
     "s@example.org does not exist", *NO_SENDER),
    ("Sendmail", "dot", 552, "5.2.3", "5.2.3 Message is too large; 10485760 bytes max", *CONTENT),
    # Exchange on premises: learn.microsoft.com, NDRs in Exchange Server
    ("Exchange", "rcpt", 550, "5.1.1", "5.1.1 User unknown", *DEAD),
    ("Exchange", "rcpt", 550, "5.1.10", "5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not "
     "found by SMTP address lookup", *DEAD),
    ("Exchange", "dot", 550, "5.4.4", "5.4.4 SMTPSEND.DNS.NonExistentDomain; nonexistent domain",
     *DEAD),
    ("Exchange", "rcpt", 550, "5.1.6", "5.1.6 Recipient addresses in single label domains not "
     "accepted", *DEAD),
    ("Exchange", "dot", 552, "5.2.2", "5.2.2 This message is larger than the current system "
     "limit or the recipient's mailbox is full. Create a shorter message body or remove "
     "attachments and try sending it again.", *FULL),
    ("Exchange", "rcpt", 452, "4.3.1", "4.3.1 Insufficient system resources "
     "(UsedDiskSpace[C:\\Program Files\\Microsoft])", *LATER),
    ("Exchange", "greeting", 421, "4.3.2", "4.3.2 Service not available", *NO_RELAY),
    ("Exchange", "data", 421, "4.4.2", "4.4.2 Connection dropped due to SocketError", *LATER),
    ("Exchange", "rcpt", 550, "5.7.1", "5.7.1 Unable to relay", *POLICY),
    ("Exchange", "dot", 550, "5.7.1", "5.7.1 RESOLVER.RST.AuthRequired; authentication required",
     *UNWANTED),
    ("Exchange", "dot", 550, "5.2.1", "5.2.1 Content Filter agent quarantined this message",
     *POLICY),
    ("Exchange", "dot", 550, "5.2.3", "5.2.3 RESOLVER.RST.RecipSizeLimit; message too large for "
     "this recipient", *CONTENT),
    ("Exchange", "dot", 550, "5.6.0", "5.6.0 CAT.InvalidContent.Exception: "
     "InvalidCharsetException, cannot handle content of message", *CONTENT),
    ("Exchange", "rcpt", 550, "5.5.3", "5.5.3 Too many recipients", *LATER),
    ("Domino", "rcpt", 550, "", "User a@example.org not listed in Domino Directory", *DEAD),
    # Gateways
    ("Proofpoint", "rcpt", 550, "5.1.1", "5.1.1 User Unknown", *DEAD),
    ("Proofpoint", "rcpt", 452, "4.3.1", "4.3.1 Insufficient disk space; try again later", *LATER),
    ("Proofpoint", "rcpt", 554, "", "Blocked - see https://ipcheck.proofpoint.com/?ip=192.0.2.1",
     *POLICY),
    ("Proofpoint", "dot", 550, "5.7.0", "5.7.0 Local Policy Violation", *POLICY),
    ("Proofpoint", "dot", 552, "5.3.4", "5.3.4: message size exceeds limit", *CONTENT),
    ("Mimecast", "rcpt", 550, "", "Invalid Recipient - "
     "https://community.mimecast.com/docs/DOC-1369#550 [xyz.uk241]", *DEAD),
    ("Mimecast", "rcpt", 550, "", "Recipient address rejected: User unknown", *DEAD),
    ("Mimecast", "rcpt", 451, "", "Recipient temporarily unavailable - "
     "https://community.mimecast.com/docs/DOC-1369#451", *LATER),
    ("Mimecast", "rcpt", 451, "", "Internal resources are temporarily unavailable - "
     "https://community.mimecast.com/docs/DOC-1369#451", *LATER),
    ("Mimecast", "rcpt", 550, "", "csi.mimecast.org Poor Reputation Sender. - "
     "https://community.mimecast.com/docs/DOC-1369#550", *POLICY),
    ("Mimecast", "dot", 550, "", "Rejected by header based manually Blocked Senders - "
     "https://community.mimecast.com/docs/DOC-1369#550", *POLICY),
    ("Mimecast", "rcpt", 550, "", "Administrative prohibition - envelope blocked - "
     "https://community.mimecast.com/docs/DOC-1369#550", *POLICY),
    ("Mimecast", "dot", 554, "", "Email rejected due to security policies - "
     "https://community.mimecast.com/docs/DOC-1369#554", *POLICY),
    ("Barracuda", "rcpt", 550, "", "permanent failure for one or more recipients "
     "(a@example.org:550 5.1.1 <a@example.org>: User unknown)", *DEAD),
    ("Barracuda", "rcpt", 550, "", "permanent failure for one or more recipients "
     "(a@example.org:blocked)", *POLICY),
    ("Barracuda", "rcpt", 554, "", "Service unavailable; Client host [mail.example.org] blocked "
     "using Barracuda Reputation; http://www.barracudanetworks.com/reputation/?r=1&ip=192.0.2.1",
     *POLICY),
    ("Barracuda", "rcpt", 450, "", "temporary failure for one or more recipients "
     "(a@example.org:450 4.2.0 try again later)", *LATER),
    ("Barracuda", "dot", 550, "", "Message was blocked by policy: no spam please", *POLICY),
    ("IronPort", "rcpt", 550, "5.1.0", "#5.1.0 Address rejected.", *DEAD),
    ("IronPort", "greeting", 554, "", "Your access to this mail system has been rejected due to "
     "the sending MTA's poor reputation.", *NO_RELAY),
    ("IronPort", "rcpt", 452, "", "Too many recipients received this hour", *LATER),
    ("Cloudmark", "rcpt", 550, "5.7.1", "5.7.1 Blocked by Cloudmark CSI, see "
     "http://csi.cloudmark.com/reset-request/?ip=192.0.2.1", *POLICY),
    ("Symantec", "rcpt", 553, "", "Invalid recipient a@example.org (Mode: normal)", *DEAD),
    ("Trend Micro", "rcpt", 550, "5.7.1", "5.7.1 Service unavailable; Client host [192.0.2.1] "
     "blocked using Trend Micro Email Reputation Service.", *POLICY),
    ("Trellix", "rcpt", 550, "", "Invalid recipient (ETP102)", *DEAD),
]  # fmt: skip
