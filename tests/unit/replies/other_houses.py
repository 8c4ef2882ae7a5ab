"""Other mailbox houses: replies as their postmasters' public pages give them."""

from __future__ import annotations

from .meanings import (
    CONTENT,
    DEAD,
    FULL,
    GREY,
    LATER,
    NO_RELAY,
    NO_SENDER,
    POLICY,
    QUOTA,
    SENDER,
    SLOWER,
    UNWANTED,
    Row,
)

OTHER_HOUSES: list[Row] = [
    # GMX, web.de and 1&1: postmaster.gmx.net; they send no enhanced codes
    ("GMX", "rcpt", 550, "", "Requested action not taken: mailbox unavailable For explanation "
     "visit https://postmaster.gmx.net/en/case?c=r0106&i=ip&v=192.0.2.1", *DEAD),
    ("GMX", "rcpt", 550, "", "<a@example.org>: Requested action not taken: mailbox unavailable",
     *DEAD),
    ("web.de", "rcpt", 550, "", "Benutzer nicht bekannt/User unknown", *DEAD),
    ("web.de", "rcpt", 550, "", "Unknown local part a in <a@example.org>", *DEAD),
    ("web.de", "rcpt", 550, "", "Benutzer hat das Speichervolumen ueberschritten. / User has "
     "exhausted allowed storage space.", *FULL),
    ("web.de", "rcpt", 550, "", "Benutzer hat zuviele Mails auf dem Server. / User has too many "
     "messages on the server.", *FULL),
    ("GMX", "rcpt", 552, "", "Requested mail action aborted: exceeded storage allocation Quota "
     "exceeded. The recipient's mailbox is full.", *FULL),
    ("GMX", "rcpt", 450, "", "Requested mail action not taken: mailbox unavailable Reject due to "
     "policy violations.", *LATER),
    ("GMX", "data", 451, "", "Requested action aborted: local error in processing", *LATER),
    ("GMX", "mail", 421, "", "Rate limit reached. Please try again later", *SLOWER),
    ("GMX", "rcpt", 550, "", "Requested action not taken: mailbox unavailable Reject due to "
     "policy restrictions. For explanation visit https://postmaster.gmx.net/en/case?c=poli",
     *POLICY),
    ("GMX", "rcpt", 550, "", "<a@example.org>: Reject due to SPF policy. The originating IP of "
     "the message is not permitted by the domain owner", *POLICY),
    ("GMX", "dot", 554, "", "Transaction failed Reject due to policy restrictions. For "
     "explanation visit https://postmaster.gmx.net/en/case?c=hi", *POLICY),
    ("GMX", "dot", 552, "", "Requested mail action aborted: exceeded storage allocation Message "
     "size exceeds fixed limit", *CONTENT),
    ("GMX", "greeting", 554, "", "gmx.net (mxgmx104) Nemesis ESMTP Service not available No SMTP "
     "service IP address is block listed.", *NO_RELAY),
    # T-Online: postmaster.t-online.de
    ("T-Online", "rcpt", 550, "5.1.1", "5.1.1 user unknown", *DEAD),
    ("T-Online", "rcpt", 552, "5.2.2", "5.2.2 Over STORAGE quota", *FULL),
    ("T-Online", "greeting", 554, "", "IP=192.0.2.1 - None/bad reputation. Ask your postmaster "
     "for help or to contact tobr@rx.t-online.de for reset. (NOWL)", *NO_RELAY),
    ("T-Online", "rcpt", 554, "", "IP=192.0.2.1 - A problem occurred. (Ask your postmaster for "
     "help or to contact tosa@rx.t-online.de to clarify.) (BL)", *POLICY),
    ("T-Online", "dot", 550, "5.7.0", "5.7.0 Message considered as spam or virus, rejected",
     *POLICY),
    ("T-Online", "rcpt", 550, "", "Send quota exceeded", *QUOTA),
    ("T-Online", "rcpt", 421, "4.7.0", "4.7.0 Too many connections from 192.0.2.1, please try "
     "again later", *SLOWER),
    # Comcast: postmaster.comcast.net
    ("Comcast", "rcpt", 550, "5.1.1", "5.1.1 Not our Customer", *DEAD),
    ("Comcast", "rcpt", 552, "5.2.2", "5.2.2 <a@example.org> mailbox full", *FULL),
    ("Comcast", "mail", 421, "4.1.0", "4.1.0 192.0.2.1 Throttled - try again later. Please see "
     "http://postmaster.comcast.net/smtp-error-codes.php#RL000003", *SLOWER),
    ("Comcast", "dot", 550, "5.2.0", "5.2.0 1vXJ1k00C4 Comcast block for spam. Please see "
     "http://postmaster.comcast.net/smtp-error-codes.php#BL000000", *POLICY),
    ("Comcast", "rcpt", 554, "", "resimta-po-01v.sys.comcast.net comcast 192.0.2.1 Comcast BL004 "
     "Blocked for abuse. Please see http://postmaster.comcast.net/", *POLICY),
    ("Comcast", "dot", 550, "5.2.0", "5.2.0 Message rejected due to DMARC. Please see "
     "http://postmaster.comcast.net/smtp-error-codes.php#DM000001", *POLICY),
    # Orange and La Poste: the texts' last three digits
    ("Orange", "rcpt", 550, "5.1.1", "5.1.1 Adresse d au moins un destinataire invalide. Invalid "
     "recipient. OFR_416 [416]", *DEAD),
    ("Orange", "rcpt", 552, "5.1.1", "5.1.1 Boite du destinataire pleine. Recipient overquota. "
     "OFR_417 [417]", *FULL),
    ("Orange", "greeting", 421, "", "mwinf5c79 ME Trop de connexions, veuillez verifier votre "
     "configuration. Too many connections, slow down. OFR005_104 [104]", *NO_RELAY),
    ("Orange", "mail", 421, "", "mwinf5c77 ME Service refuse. Veuillez essayer plus tard. "
     "Service refused, please try later. OFR_999 [999]", *SLOWER),
    ("Orange", "rcpt", 550, "", "mwinf5c04 ME Adresse IP source bloquee pour incident de spam. "
     "Client host blocked for spamming issues. OFR006_102 Ref http://csi.cloudmark.com", *POLICY),
    ("Orange", "rcpt", 550, "", "mwinf5c10 ME Service refuse. Veuillez essayer plus tard. "
     "Service refused, please try later. OFR006_103 192.0.2.1 [103]", *POLICY),
    ("Orange", "mail", 501, "5.1.0", "5.1.0 Emetteur invalide. Invalid Sender. OFR004_405 [405]",
     *NO_SENDER),
    ("Orange", "dot", 550, "", "Mail rejete. Mail rejected. OFR_506 [506]", *POLICY),
    ("La Poste", "rcpt", 550, "5.1.1", "5.1.1 Adresse d au moins un destinataire invalide. "
     "Invalid recipient. LPN416", *DEAD),
    ("La Poste", "rcpt", 550, "5.5.0", "5.5.0 Boite du destinataire archivee. Archived "
     "recipient. LPN007_420", *DEAD),
    ("La Poste", "rcpt", 550, "5.5.0", "5.5.0 Le compte du destinataire est bloque. The "
     "recipient account isblocked. LPN007_426", *UNWANTED),
    ("La Poste", "dot", 421, "4.2.1", "4.2.1 Service refuse. Veuillez essayer plus tard. Service "
     "refused, please try later. LPN007_505", *SLOWER),
    ("La Poste", "rcpt", 550, "5.5.0", "5.5.0 Service refuse. Veuillez essayer plus tard. "
     "service refused, please try later. LPN005_510", *POLICY),
    ("La Poste", "rcpt", 550, "5.5.0", "5.5.0 Les emails envoyes vers la messagerie Laposte.net "
     "ont ete bloques par nos services. LPN007_102", *POLICY),
    ("La Poste", "rcpt", 550, "5.5.3", "5.5.3 Service refuse LPN105_421", *SENDER),
    ("Orange", "dot", 552, "", "OFR_514 [514]", *CONTENT),
    ("La Poste", "dot", 571, "5.7.1", "5.7.1 Message refused, DMARC verification Failed. Message "
     "refuse, verification DMARC en echec LPN007_517", *POLICY),
    ("SFR", "rcpt", 554, "5.7.1", "5.7.1 <unknown[192.0.2.1]>: Client host rejected: Abus "
     "detecte GU_EIB_02", *POLICY),
    ("Free", "rcpt", 421, "", "Too many spams from your ip (192.0.2.1), please visit "
     "http://postmaster.free.fr/", *SLOWER),
    # QQ: service.mail.qq.com/detail/122; no enhanced codes
    ("QQ", "rcpt", 550, "", "Mailbox not found. "
     "http://service.mail.qq.com/cgi-bin/help?subtype=1&&id=20022&&no=1000728", *DEAD),
    ("QQ", "rcpt", 550, "", "Bad address syntax. http://service.mail.qq.com/detail/122/167", *DEAD),
    ("QQ", "rcpt", 550, "", "The recipient may contain a non-existent account, please check the "
     "recipient address. https://service.mail.qq.com/detail/122/169", *DEAD),
    ("QQ", "rcpt", 550, "", "该用户不存在", *DEAD),
    ("QQ", "rcpt", 552, "", "收件人空间不足", *FULL),
    ("QQ", "rcpt", 550, "", "Ip frequency limited. https://service.mail.qq.com/detail/122/172",
     *SLOWER),
    ("QQ", "rcpt", 550, "", "Connection frequency limited. "
     "http://service.mail.qq.com/cgi-bin/help?subtype=1&&id=20022&&no=1000722", *SLOWER),
    ("QQ", "rcpt", 550, "", "Mailbox unavailable or access denied "
     "https://service.mail.qq.com/detail/122/166", *POLICY),
    ("QQ", "dot", 550, "", "Mail content denied. "
     "http://service.mail.qq.com/cgi-bin/help?subtype=1&&id=20022&&no=1000726", *CONTENT),
    ("QQ", "rcpt", 550, "", "Suspected spam ip https://service.mail.qq.com/detail/122/66", *POLICY),
    ("QQ", "dot", 550, "", "SPF check failed. https://service.mail.qq.com/detail/122/72", *POLICY),
    ("QQ", "dot", 550, "", "Mail is rejected by recipients "
     "https://service.mail.qq.com/detail/122/92", *UNWANTED),
    ("QQ", "dot", 552, "", "Message too large. https://service.mail.qq.com/detail/122/168",
     *CONTENT),
    ("QQ", "mail", 501, "", "mail from address must be same as authorization user", *NO_SENDER),
    # NetEase (163.com, 126.com): help.mail.163.com
    ("163", "rcpt", 550, "", "User not found: a@example.org", *DEAD),
    ("163", "rcpt", 550, "", "User suspended", *DEAD),
    ("163", "rcpt", 550, "", "User in blacklist", *UNWANTED),
    ("163", "rcpt", 552, "", "收件人邮箱已满", *FULL),
    ("163", "dot", 451, "", "DT:SPM 163 smtp12,please try again", *SLOWER),
    ("163", "mail", 451, "", "MI:SFQ 163 mx1 发信人在15分钟内的发信数量超过限制", *SLOWER),
    ("163", "mail", 421, "", "HL:REP 163 mx20 该IP发送行为异常", *SLOWER),
    ("163", "dot", 554, "", "DT:SPM 163 smtp10 邮件正文带有垃圾邮件特征", *POLICY),
    ("163", "rcpt", 550, "", "MI:SPF 163 mx36 发信IP未被发送域的SPF许可", *POLICY),
    ("163", "dot", 554, "", "MI:STC 163 smtp5", *POLICY),
    ("163", "rcpt", 550, "", "RP:TRC 163 mx12 发送来源触发网易反垃圾策略", *POLICY),
    # Mail.ru and Yandex
    ("Mail.ru", "dot", 550, "", "Message was not accepted -- invalid mailbox. Local mailbox "
     "a@example.org is unavailable: user not found", *DEAD),
    ("Mail.ru", "dot", 550, "", "Message was not accepted -- invalid mailbox. Local mailbox "
     "a@example.org is unavailable: user is terminated", *DEAD),
    ("Mail.ru", "dot", 550, "", "Message was not accepted -- invalid mailbox. Local mailbox "
     "a@example.org is unavailable: account is disabled", *DEAD),
    ("Mail.ru", "rcpt", 552, "", "Mailbox full: user quota exceeded", *FULL),
    ("Mail.ru", "dot", 550, "", "spam message rejected. Please visit "
     "http://help.mail.ru/notspam-support/id?c=Ak1f or report details to abuse@corp.mail.ru. "
     "Error code: FD5F4D02.", *POLICY),
    ("Mail.ru", "rcpt", 550, "", "Access from ip address 192.0.2.1 blocked. Visit "
     "http://postmaster.mail.ru/", *POLICY),
    ("Mail.ru", "rcpt", 550, "", "Non-local sender verification failed", *SENDER),
    ("Mail.ru", "dot", 550, "5.7.1", "5.7.1 This message was not accepted due to domain owner "
     "DMARC policy (RFC 7489)", *POLICY),
    ("Mail.ru", "dot", 550, "", "message sending for this account is disabled", *POLICY),
    ("Mail.ru", "rcpt", 451, "", "Ratelimit exceeded for mailbox", *SLOWER),
    ("Yandex", "rcpt", 550, "5.7.1", "5.7.1 No such user!; 1700000000-abcDEF", *DEAD),
    ("Yandex", "rcpt", 550, "5.7.1", "5.7.1 Policy rejection on the target address", *UNWANTED),
    ("Yandex", "dot", 554, "5.7.1", "5.7.1 [1] Message rejected under suspicion of SPAM; "
     "https://ya.cc/1IrBc", *POLICY),
    ("Yandex", "rcpt", 451, "4.7.1", "4.7.1 Sorry, the service is currently unavailable. Please "
     "come back later.", *SLOWER),
    ("Yandex", "rcpt", 452, "4.5.3", "4.5.3 Recipients limit exceeded temporarily. Please try "
     "again later.", *LATER),
    ("Bigmir", "rcpt", 550, "", "Mailbox is frozen. See http://mail.bigmir.net/err/3/", *DEAD),
    # Zoho
    ("Zoho", "rcpt", 550, "5.1.1", "5.1.1 User does not exist - <a@example.org>", *DEAD),
    ("Zoho", "rcpt", 552, "5.2.2", "5.2.2 mailbox quota exceeded", *FULL),
    ("Zoho", "rcpt", 451, "4.7.1", "4.7.1 Greylisted, please try again in 256 seconds", *GREY),
    ("Zoho", "dot", 554, "5.7.1", "5.7.1 Email cannot be delivered. Reason: Email flagged as "
     "Spam.", *POLICY),
    ("Zoho", "dot", 550, "5.4.6", "5.4.6 Unusual sending activity detected. Please try after "
     "sometime.", *QUOTA),
    ("Zoho", "rcpt", 553, "", "Relaying disallowed as s@example.org", *SENDER),
    ("Zoho", "dot", 552, "5.7.1", "5.7.1 virus Win.Test.EICAR_HDB-1 detected by Zoho Mail",
     *POLICY),
    # Amazon WorkMail
    ("WorkMail", "rcpt", 550, "5.1.1", "5.1.1 Requested action not taken: mailbox unavailable",
     *DEAD),
    ("WorkMail", "rcpt", 550, "5.1.1", "5.1.1 Invalid recipient a@example.org", *DEAD),
    ("WorkMail", "dot", 552, "5.2.2", "5.2.2 Mailbox is full", *FULL),
    ("WorkMail", "rcpt", 451, "4.4.1", "4.4.1 Timeout waiting for data from client.", *LATER),
    ("WorkMail", "dot", 554, "5.7.1", "5.7.1 Message rejected due to DMARC policy", *POLICY),
    ("WorkMail", "dot", 552, "5.3.4", "5.3.4 Message size exceeds limit", *CONTENT),
]  # fmt: skip
