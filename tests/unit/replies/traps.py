"""Replies that say two things: what must win, and that nobody is suppressed for our name."""

from __future__ import annotations

from .meanings import DEAD, FULL, GREY, LATER, POLICY, QUOTA, SENDER, UNWANTED, Row

TRAPS: list[Row] = [
    # Codes of a dead address around words about us: nobody may be suppressed for our name
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: Recipient address rejected: blocked "
     "using zen.spamhaus.org", *POLICY),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 User unknown; your IP 192.0.2.1 is listed on Spamhaus",
     *POLICY),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: Recipient address rejected: "
     "undeliverable address: host mx.example.org said: 554 5.7.1 Service unavailable; Client "
     "host [192.0.2.1] blocked using bl.spamcop.net", *POLICY),
    ("trap", "rcpt", 550, "5.2.1", "5.2.1 Mailbox unavailable: your IP address has a poor "
     "reputation", *POLICY),
    ("trap", "rcpt", 550, "5.2.1", "5.2.1 Message blocked: DKIM signature missing", *POLICY),
    ("trap", "rcpt", 550, "5.1.0", "5.1.0 Address rejected, sending host is blacklisted", *POLICY),
    ("trap", "rcpt", 550, "5.1.2", "5.1.2 Rejected, no reverse DNS for your host", *POLICY),
    ("trap", "rcpt", 550, "5.5.0", "5.5.0 Requested action not taken: mailbox unavailable; part "
     "of your network is on our block list (S3150)", *POLICY),
    ("trap", "rcpt", 550, "", "Requested action not taken: mailbox unavailable. Your IP "
     "[192.0.2.1] is on our block list", *POLICY),
    ("trap", "rcpt", 550, "", "Requested action not taken: mailbox unavailable (e.g., mailbox "
     "not found, no access, or command rejected for policy reasons)", *POLICY),
    ("trap", "rcpt", 550, "", "mailbox unavailable: sender is a spammer", *POLICY),
    ("trap", "rcpt", 550, "", "User unknown (rejected for policy reasons)", *POLICY),
    ("trap", "rcpt", 550, "5.4.1", "5.4.1 Recipient address rejected: Access denied, banned "
     "sending IP [192.0.2.1]", *POLICY),
    ("trap", "dot", 554, "", "delivery error: dd Message from your IP not accepted, unsolicited "
     "mail", *POLICY),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 Too many invalid recipients from your host", *POLICY),
    ("trap", "rcpt", 556, "", "domain does not accept mail from IP 192.0.2.1, blocked", *POLICY),
    ("trap", "dot", 550, "5.1.1", "5.1.1 Message refused: virus found", *POLICY),
    ("trap", "rcpt", 550, "", "your account has been suspended", *POLICY),
    ("trap", "rcpt", 550, "5.7.1", "5.7.1 user unknown", *POLICY),
    ("trap", "rcpt", 550, "5.7.1", "5.7.1 <a@example.org>: Recipient address rejected: Mailbox "
     "does not exist", *POLICY),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 Message blocked by policy", *POLICY),
    ("trap", "rcpt", 550, "5.2.1", "5.2.1 Blocked", *POLICY),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: Recipient address rejected: Access "
     "denied", *POLICY),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 mail from your domain is not accepted here", *POLICY),
    ("trap", "rcpt", 550, "", "your IP is temporarily blocked", *POLICY),
    ("trap", "rcpt", 550, "", "your account is temporarily suspended", *POLICY),
    ("trap", "rcpt", 550, "5.2.1", "5.2.1 your IP", *POLICY),
    ("trap", "dot", 554, "5.1.1", "5.1.1 Sorry, rejected as SPAM", *POLICY),
    ("trap", "rcpt", 550, "5.1.6", "5.1.6 sending host is in the PBL, see pbl.example.org",
     *POLICY),
    ("trap", "rcpt", 550, "5.1.10", "5.1.10 Recipient not found; connection from a host with bad "
     "rDNS", *POLICY),
    # ... nor for our sender address
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <s@example.org>: Sender address rejected: User unknown "
     "in virtual alias table", *SENDER),
    ("trap", "rcpt", 550, "5.1.0", "5.1.0 <s@example.org>: Sender address rejected: User unknown "
     "in virtual mailbox table", *SENDER),
    ("trap", "rcpt", 550, "5.1.7", "5.1.7 Bad sender's mailbox address syntax", *SENDER),
    ("trap", "rcpt", 550, "", "Callback setup failed while verifying <s@example.org>: user "
     "unknown", *SENDER),
    # ... nor because the mailbox is full or the hour is bad
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: mailbox full", *FULL),
    ("trap", "rcpt", 550, "5.2.1", "5.2.1 mailbox disabled: user is over quota", *FULL),
    ("trap", "rcpt", 550, "5.2.1", "5.2.1 This account has been temporarily suspended", *UNWANTED),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 You have been blocked by the recipient", *UNWANTED),
    ("trap", "rcpt", 450, "5.1.1", "5.1.1 user unknown", *LATER),
    ("trap", "rcpt", 451, "5.2.1", "5.2.1 mailbox disabled", *LATER),
    ("trap", "rcpt", 550, "4.1.1", "4.1.1 user unknown", *LATER),
    ("trap", "rcpt", 550, "4.4.1", "4.4.1 lookup failed", *LATER),
    ("trap", "rcpt", 550, "4.7.1", "4.7.1 Greylisted, try again", *GREY),
    ("trap", "rcpt", 552, "", "too many recipients", *LATER),
    ("trap", "rcpt", 550, "", "Greylisted, please come back later", *GREY),
    # An address may have any name, a host too
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <spam@example.org>: Recipient address rejected: User "
     "unknown", *DEAD),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <blacklisted.policy@example.org>: User unknown", *DEAD),
    ("trap", "rcpt", 550, "", "<full.quota@example.org>: No such user here", *DEAD),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 <a@example.org>: User unknown, says "
     "mx1.ess.barracudanetworks.com", *DEAD),
    ("trap", "rcpt", 550, "5.1.1", "5.1.1 antispam.example.org: no such mailbox", *DEAD),
    # Of what does it speak?
    ("trap", "dot", 550, "5.1.1", "5.1.1 unknown or illegal alias: a@example.org", *DEAD),
    ("trap", "data", 550, "", "Unknown user", *DEAD),
    ("trap", "rcpt", 551, "", "User not local; please try <b@example.org>", *DEAD),
    ("trap", "rcpt", 550, "", "Daily user sending quota exceeded", *QUOTA),
    ("trap", "rcpt", 554, "5.0.0", "5.0.0 Your message was rejected", *POLICY),
]  # fmt: skip
