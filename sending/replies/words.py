"""The words by which replies are told apart, in the languages that mail servers speak.

Every pattern is written for a text as ``plain`` makes it: lower case, without addresses and
without the repeated codes of a multi-line reply. A dot stands for a letter with an accent, which
arrives in any encoding or in none. Sources: the senders' pages of Gmail, Yahoo, Microsoft, Apple,
United Internet, Telekom, Orange, La Poste, Comcast, NetEase, Tencent, Mail.ru, Yandex and Zoho,
the texts that Postfix, Exim, Sendmail, qmail and Exchange are shipped with, and Sisimai's and
KumoMTA's public rule sets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ADDRESS = re.compile(r"(?<![\w.+=%/-])[\w.+=%/-]++@[\w.-]*")


def plain(text: str, enhanced: str) -> str:
    """``text`` ready for the patterns: an address may be called ``spam@`` or ``blocked@``, and
    each line of a multi-line reply begins with its enhanced code. A space comes first, so that a
    pattern which wants a gap before its word finds one there too."""
    if "@" in text:
        text = _ADDRESS.sub("@", text)
    if enhanced and text.count(enhanced) > 1:
        text = " ".join(text.replace(enhanced, " ").split())
    return f" {text.lower()}"


def mentions(text: str, needles: tuple[str, ...]) -> bool:
    """Whether one of ``needles`` is in ``text``. A loop: ``any`` takes twice as long."""
    for needle in needles:  # noqa: SIM110
        if needle in text:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Words:
    """A pattern, and what every text that it matches contains one of.

    Looking for a few plain strings first takes a tenth of the time of the pattern, and most
    patterns have nothing to say to most replies. No ``needles``: always search.
    """

    pattern: re.Pattern[str]
    needles: tuple[str, ...] = ()

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in ``text``, or None."""
        if self.needles and not mentions(text, self.needles):
            return None
        return self.pattern.search(text)


def words(*alternatives: str, needles: str = "") -> Words:
    """One pattern of many. Each begins with a letter where it can, and what has to stand before
    that is looked at afterwards: a search that knows its first letters is several times as fast.
    ``needles`` are parted by ``|``."""
    return Words(re.compile("|".join(alternatives)), tuple(filter(None, needles.split("|"))))


def about_us(text: str) -> bool:
    """Whether the sender's machine, name or history is meant, whatever else ``text`` says."""
    return ABOUT_US.search(text) is not None or ABOUT_IP.search(text) is not None


# --- about us ---------------------------------------------------------------------------------

#: The sender's machine, name or history is meant, whatever else the reply says. Where one of
#: these stands, nobody is suppressed: "550 5.1.1 ... blocked using zen.spamhaus.org".
ABOUT_US = words(
    r"spam(?:haus|cop|assassin)|sorbs\.|uceprotect|abusix|invaluement|mailspike",
    r"barracuda(?:central| ?reputation|networks\.com/reputation)|sender ?score|cloudmark|nowl\b",
    r"dns-?[bw]l|rbls?\b(?<!\wrbl)|(?:zen|sbl|xbl|pbl|cbl)\.\w|ipcheck|csi\.mimecast",
    r"(?:block|black|deny)(?:ed)?[- _]?(?:list|addr)",
    r"blocked (?:using|by (?!the recipient|recipient|user)|for (?:abuse|spam)|- see|because)",
    r"(?:your|sending|sender|source|client|connecting|originating)(?:'?s)?"
    r" (?:ip|host|server|network|net ?block|mta|smtp|mail ?server|dns|reverse|rdns|domain|account)",
    r"reputation|spf\b|dkim\b|dmarc\b|unauthenticated (?:e?-?mail|sender|message)",
    r"ptr\b(?<!\wptr)|reverse[ -]?(?:dns|host|lookup)|rdns\b",
    r"spam(?<![\w.@/-]spam)(?:mer|my|ming|s)?\b(?![.-]\w)|anti-?spam\b(?![.-]\w)",
    r"unsolicited|[uc][bc]e\b(?<!\w[uc][bc]e)|bulk (?:e-?mail|mail|sender)|phish|virus|malware",
    r"too many (?:bad|invalid|unknown|failed|wrong|non-?existent|spam|unwanted)",
    r"sperrliste|schwarze liste|liste noire|lista negra",
    r"спам|черн\w+ спис|чёрн\w+ спис|黑名单|黑名單|垃圾|信誉",
    needles="spam|block|black|your|sender|client|reputation|dkim|spf|dmarc|sending|source|deny"
    "|connecting|originating|score|rbl|dns|reverse|ptr|bulk|unsolicited|too many|virus|malware"
    "|phish|unauthenticated|sbl.|xbl.|pbl.|cbl.|zen.|sorbs|uce|ube|cbe|cce|abusix|invaluement"
    "|mailspike|barracuda|cloudmark|nowl|ipcheck|mimecast|sperrliste|schwarze|liste noire"
    "|lista negra|спам|спис|黑|垃圾|信誉",
)

#: The address of the sender's machine is meant. Apart, since "ip" is in every recipient.
ABOUT_IP = words(
    r"[ (\[<]ip\b(?: address)?.{0,40}\b"
    r"(?:block|ban|list|reject|reputation|denied|not allowed|refused)",
    r"(?:blocked|banned|rejected|refused|denied|dynamic|suspected|bad|from)(?: this)? ips?\b",
    r"[ (\[<]ip-adresse|adresse ip|direcci.n ip|[ (\[<]ip.?адрес",
    r"[ (\[<的]ip(?:地址)?[^,。]{0,8}(?:封|限|拒)|该ip|此ip",
    needles=" ip|(ip|[ip|<ip|的ip|该ip|此ip",
)

#: The sender's address is meant.
ABOUT_SENDER = words(
    r"sender(?: e?-?mail)?(?: address| domain|'s domain)?:? .{0,60}"
    r"(?:reject|refus|denied|invalid|unknown|not exist|verif|spammer|empty|not allowed|not found)",
    r"sender verif|sender callout|(?:invalid|unknown|unverified|bad|unroutable|bogus) sender",
    r"domain of sender|sender domain|envelope sender|badmailfrom|return[- ]path",
    r"mail from\b.{0,30}(?:reject|refus|denied|invalid|not owned|must be same|not allowed)",
    r"callback setup failed|relaying disallowed as|as this sender|sendasdenied|address not owned",
    r"from domain|(?:invalid|missing|no valid) (?:rfc.?5322 )?from\b|not an authorized sender",
    r"absender|metteur (?:invalide|refus)|exp.diteur|remitente|mittente|remetente",
    r"отправител|发件人|发信人|寄件人|寄件者",
    needles="sender|mail from|callback|disallowed|badmailfrom|return|sendasdenied|not owned"
    "|from domain| from|metteur|diteur|remitente|mittente|remetente|отправител|发件人|发信人|寄件",
)

#: We may not use this server: no login, no relay.
RELAYING = words(
    r"relay(?:ing)?(?: mail)?(?: access)? (?:is )?(?:denied|disallowed|not (?:permitted|allowed))",
    r"relay(?:ing)? (?:to .{0,40})?prohibited|unable to relay|not allowed to relay|open relay",
    r"(?:do not|does not|don't|cannot|no) relay|rcpthosts|smtp authentication|as a relay",
    r"authentication (?:is )?(?:required|requise)|must (?:first )?authenticate|not authenticated",
    needles="relay|rcpthosts|authenticat",
)

#: A refusal for policy, when nothing in the reply says more.
BLOCKED = words(
    r"blocked|banned|polic(?:y|ies)|administrative prohibition|prohibited|access denied",
    r"not (?:allowed|permitted|authori[sz]ed)|forbidden|suspicious|fraud|abuse|junk",
    r"your (?:account|domain)\b|your (?:e-?)?mail was|rejected for|refused by local|go away",
    r"sending (?:messages |mail )?(?:for|from) this account",
    r"your message (?:was|has|is|looks|contains|appears|may)|message (?:refused|filtered)",
    r"(?:bad|invalid) helo|helo\b.{0,40}(?:reject|invalid|qualified)|client host rejected",
    r"envelope blocked|blocked senders|security polic|refused - see|service unavailable",
    r"(?:server|host|domain)\b.{0,20}(?:gesperrt|blockiert)|richtlinie|unerw.{1,2}nscht",
    r"bloqu.{1,2}s?\b|bloquead|refus. pour|pol.ti(?:ca|que)|rechazad\w+ por|service refus",
    r"политик|заблокирован|запрещ|拒收|屏蔽|被拒|拒绝|禁止",
    needles="blocked|banned|polic|prohibit|denied|not |forbidden|suspicious|fraud|abuse|junk|your "
    "|rejected for|refus|go away|this account|filtered|helo|client host|envelope|unavailable"
    "|gesperrt|blockiert|richtlinie|nscht|bloqu|tica|tique|rechazad|политик|заблокирован|запрещ"
    "|拒|屏蔽|禁止",
)

# --- about the recipient ----------------------------------------------------------------------

_DE = r"(?:empf.{1,2}nger|benutzer|postfach|adresse|mailbox|konto|nutzer|teilnehmer)"
_FR = r"(?:utilisateur|destinataire|adresse|bo.{1,2}te|compte|abonn)"
_ES = r"(?:usuario|destinatario|buz.{1,2}n|cuenta|direcci.{1,2}n|casilla|correo)"
_RU = r"(?:пользовател|ящик|адрес|получател|абонент|учетн|учётн|аккаунт)"
_ZH = r"(?:用户|用戶|收件人|邮箱|郵箱|地址|账号|帐号|帳號|信箱|使用者|邮件)"

NO_SUCH_USER = words(
    r"(?:user|recipient|mailbox|account|address|alias|e-?mail name)"
    r"(?: is| was| name)?(?: currently)? ?(?:unknown|not (?:found|known|present|listed)|invalid\b)",
    r"(?:user|recipient|mailbox|account|address|alias)\b.{0,60}(?:does not|doesn.t|not) exist",
    r"(?:unknown|invalid|no such|illegal|non-?existent|bad)(?: or \w+)? (?:destination )?"
    r"(?:e-?mail )?(?:local )?(?:virtual )?(?:user|recipient|mailbox|account|address|alias|person)",
    r"no (?:mailbox|user|account|one)(?: here| at this address)?(?: by that name| with that name)",
    r"(?:doesn.t|does not) have an? .{0,40}account|unrout(?:e)?able address|recipientnotfound",
    r"recnotfound|not a (?:known|valid|local) (?:user|recipient|mailbox|address)",
    r"not our customer|unknown local part|no mail ?box (?:found|available for)|user missing",
    r"account that you tried to reach does not exist|this address no longer accepts mail",
    r"is not a known user|local server don.t exists?|the recipient may contain a non-existent",
    r"not listed in (?:domino )?directory|undeliverable address|host unknown|domain not found",
    r"(?:unknown|no such) (?:host|domain)|(?:bad|malformed) (?:address|recipient)",
    r"user is terminated",
    _DE
    + r".{0,40}(?:unbekannt|existiert nicht|nicht (?:gefunden|bekannt|vorhanden)|ung.{1,2}ltig)",
    r"unbekannte[rs]? " + _DE + r"|keine?n? (?:solche[rns]? )?" + _DE,
    _FR + r".{0,50}(?:inconnu|inexistant|n.existe (?:pas|plus)|invalide|introuvable)",
    _ES + r".{0,40}(?:desconocid|no (?:existe|encontrad|v.{1,2}lid)|inexistente|inv.{1,2}lid)",
    r"no existe (?:dicha|ese|el|la|esa) |nessun utente|(?:utente|casella|indirizzo).{0,30}"
    r"(?:sconosciut|inesistent|non esist|non valid)",
    r"usu.{1,2}rio (?:desconhecid|inexist|n.{1,2}o exist)",
    _RU + r".{0,40}(?:не (?:существует|найден|зарегистрирован|известен)|неизвест|отсутству)",
    r"нет таког\w+ (?:пользовател|адрес|ящик)|неизвестн\w+ (?:пользовател|получател|адрес)",
    _ZH
    + r"[^,。]{0,8}(?:不存在|无效|無效|未开通)|(?:[无無]|没有|查[无無])此[人用使帐账帳]|查无此人",
    needles="unknown|exist|lid|no such|not |illegal|bad |no mail|no user|no account|no one| have a"
    "|unrout|notfound|user missing|no longer accepts|undeliverable|malformed|terminated|unbekannt"
    "|nicht |ltig|kein|inconnu|introuvable|desconoc|encontrad|nessun|sconosciut|esist|desconhecid"
    "|не |неизвест|отсутству|нет таког|不存在|无效|無效|未开通|此|查无",
)

#: The address was there once. What is only locked for a time is in ``LOCKED``.
DISABLED = words(
    r"(?:mailbox|account|user|address|recipient).{0,60}(?:disabled|deactivated|inactive|suspended"
    r"|closed|discontinued|terminated|no longer (?:valid|active|available))",
    r"(?:disabled|deactivated|inactive|suspended|archived|closed) "
    r"(?:e-?mail )?(?:mailbox|account|user|address|recipient)",
    r"mailbox is frozen|user is locked|account (?:expired|is locked)|recipient no longer on",
    _DE + r".{0,40}(?:deaktiviert|gesperrt|geschlossen|gel.{1,2}scht|inaktiv)",
    _FR + r".{0,40}(?:d.{1,2}sactiv|ferm.{1,2}\b|suspendu|archiv|supprim|cl.{1,2}tur)",
    _ES + r".{0,40}(?:desactivad|deshabilitad|suspendid|inactiv|cerrad|eliminad|dada de baja)",
    _RU + r".{0,40}(?:отключ|деактивир|удал[её]н|закрыт)",
    _ZH + r"[^,。]{0,8}(?:停用|禁用|注销|冻结|锁定|被锁|关闭|休眠)",
    needles="disabled|activ|suspend|closed|discontinued|terminated|no longer|archiv|frozen|locked"
    "|expired|aktiv|gesperrt|geschlossen|scht|ferm|supprim|tur|deshabilitad|cerrad|eliminad|baja"
    "|отключ|деактивир|удал|закрыт|停用|禁用|注销|冻结|锁定|被锁|关闭|休眠",
)

MAILBOX_FULL = words(
    r"(?:mailbox|inbox|account|user|recipient|maildir|mailfolder|folder).{0,40}"
    r"(?:\bfull\b|(?<!send )over ?quota|over (?:the |its )?(?:allowed )?quota|out of storage)",
    r"(?:over|exceed\w*|insufficient|not enough) "
    r"(?:the |its |their |user |disk |mail(?:box)? |storage )*"
    r"(?:quota|allocation|storage (?:limit|space)|size limit)",
    r"(?:mailbox|disk|disc|storage|user|recipient|maildir) quota "
    r"(?:is |usage |size )?(?:exceeded|violat)",
    r"mailbox size limit exceeded|mailbox (?:has )?exceeded|overquota|full mailbox|quota violation",
    r"too many messages on the server|exhausted allowed storage|storage quota|quota exceeded",
    r"exceeded storage allocation|mailbox would exceed|disk space limit|space has been used up",
    r"(?:postfach|mailbox|speicher\w*|quota|kontingent).{0,40}(?:voll|.berschritten|erschöpft|belegt)",
    r"bo.{1,2}te.{0,40}(?:pleine|satur)|quota (?:d.{1,2}pass|atteint)",
    r"espace (?:disque )?insuffisant",
    r"(?:buz.{1,2}n|casilla|bandeja|cuenta).{0,40}(?:llen|complet)|cuota (?:excedida|superada)",
    r"sin espacio|espacio insuficiente|casella (?:di posta )?piena|caixa (?:postal )?cheia",
    r"ящик.{0,40}(?:переполнен|заполнен)|превышен\w* (?:квот|объ|размер ящик)",
    r"квот\w* (?:превыш|исчерп)",
    r"(?:邮箱|信箱|收件箱|收件人|容量|空间|空間|配额)[^,。]{0,10}(?:已?满|滿|不足|超出|超限|用完)",
    needles="full|quota|storage|allocation|size limit|exceed|too many messages|space|voll"
    "|berschritten|erschöpft|belegt|pleine|satur|llen|complet|cuota|espaci|piena|cheia|переполнен"
    "|заполнен|превышен|квот|满|滿|不足|超|用完",
)

#: This one recipient will not have it, by a choice of theirs or of their house.
UNWANTED = words(
    r"(?:blocked|rejected|refused) by (?:the |this )?(?:recipient|user|addressee)",
    r"you (?:have been|are) blocked by the recipient|user (?:rejected|in blacklist)\b",
    r"(?:recipient|user|addressee) (?:has )?"
    r"(?:reject(?:ed|s)|refus(?:ed|es)|blocked) (?:your|this|mail|you)",
    r"rejected by recipients?\b|due to (?:recipient preferences|user rules)|personal blacklist",
    r"(?:only|not) accept(?:s|ing)?(?: any)? (?:e?-?mail|messages?) from "
    r"(?:specific|you|outside|extern|this)",
    r"closed mailing list|members-only list|post to this mailing list|not subscribed to this group",
    r"account ?is ?blocked",
    needles="blocked|rejected|refus|rejects|blacklist|accept|mailing list|members-only|subscribed"
    "|preferences|user rules",
)

#: Closed for a time: too early to call it dead.
LOCKED = words(
    r"temporar(?:y|ily) (?:locked|suspended|disabled|inactive)|disabled temporar",
    r"currently suspended",
    needles="temporar|suspended",
)

#: A 5xx that does not mean it: nobody is dead for a failure of the moment.
FOR_NOW = words(
    r"(?:again|retry) (?:later|in a|after)|try (?:again|later)|temporar|transient|\bbusy\b",
    r"(?:lookup|callout|verification)\b.{0,40}(?:fail|progress|time|complete)|could not complete",
    r"too many connections|connections? exceeded|позже|времен|稍后|稍後|暂时|暫時",
    needles="again|try|temporar|transient|busy|lookup|callout|verification|complete|connections"
    "|connection exceeded|позже|времен|稍|暂时|暫時",
)

# --- about the message, the rate, the time ----------------------------------------------------

OVERSIZE = words(
    r"(?:message|mail|file)(?: file)?(?: size)? (?:is )?"
    r"(?:exceeds|exceeded|too (?:large|big|long))",
    r"(?:message|mail|maximum) size (?:limit|exceed)|message (?:header )?size limit",
    r"databytes limit",
    r"(?:message|mail|e-?mail) size.{0,20}(?:exceed|over)|exceeds? (?:the )?(?:max\w*|fixed|size) "
    r"(?:message )?(?:size|limit)|size exceed|larger than|exceeded mailsize",
    r"nachricht.{0,20}zu gro|message (?:est )?trop (?:gros|volumin)",
    r"taille.{0,20}(?:limite|d.{1,2}pass)",
    r"mensaje.{0,20}(?:grande|tama)|размер (?:письма|сообщен)|письм\w+ слишком|邮件过大|郵件過大",
    needles="exceed|too large|too big|too long|size|databytes|larger than|zu gro|trop|taille"
    "|mensaje|размер|письм|过大|過大",
)

CONTENT = words(
    r"headers?\b|content\b|mime\b|attachments?\b|line too long|bare (?:lf|cr)|lone cr",
    r"malformed|rfc.?5322|duplicate header|unacceptable|pi.{1,2}ce jointe|anhang|adjunto|вложени",
    r"mail content|内容|附件",
    needles="header|content|mime|attachment|too long|bare |lone cr|malformed|5322|unacceptable"
    "|jointe|anhang|adjunto|вложени|内容|附件",
)

#: Our own allowance at a relay or provider.
SENDING_QUOTA = words(
    r"(?:daily|hourly|user|relay|account|monthly)\b.{0,30}\b"
    r"(?:sending|message|submission|relay|smtp relay) (?:sending )?(?:quota|limit)",
    r"send(?:ing)? (?:quota|limit)\b.{0,20}exceeded|submission (?:quota|limit)\b.{0,20}exceeded",
    r"submissionquotaexceeded|exceeded (?:its|the|your) (?:max\w* )?(?:emails?|messages?) per hour",
    r"email quota exceeded|sending quota exceeded|unusual sending activity|daily limit for message",
    r"max(?:imum)? emails per hour|credits? exceeded|发信数|发信量|发送数量",
    needles="quota|limit|per hour|activity|credit|发信|发送数量",
)

TOO_MANY_RECIPIENTS = words(r"too many recipients|recipients limit exceeded")

#: Slower, please; in a 5xx too, where it stands instead of anything about the address.
THROTTLED = words(
    r"frequency limit|receiving (?:e?-?mail|mail) (?:at a rate|too (?:quickly|fast))|rate[- ]limit",
    r"(?:limit|thread limit) exceeded|per hour message receive limit|throttl|slow down|\bslower\b",
    r"too many (?:concurrent |simultaneous )?(?:smtp )?(?:conn|sess|mess|mail)",
    r"too (?:fast|frequent)",
    r"unusual rate|temporarily deferred|excessive volume|server busy|ratelimit|connection rate",
    r"trop de (?:connexions|messages)|zu viele (?:verbindungen|nachrichten)",
    r"demasiad.s (?:con|mens)",
    r"слишком (?:много|часто)|превышен\w* (?:лимит|скорост|количеств)|频率|过于频繁|并发|连接数",
    r"次数",
    needles="frequen|receiving|rate|limit|throttl|slow|too many|too fast|deferred|excessive|busy"
    "|trop de|zu viele|demasiad|слишком|превышен|频|并发|连接数|次数|per hour",
)

GREYLISTED = words(
    r"gr[ea]y-?list|postgrey|greet.?delay|first[- ]time sender|graulist|liste grise|lista gris",
    r"(?:try|retry|come back)(?: again)? (?:in|after) \d",
    r"(?:try|retry|come back)(?: again)? in a few",
    r"in \d+ (?:min|sek|stund)|erneut in \d|dans \d+ (?:minute|seconde)|en \d+ (?:minuto|segundo)",
    r"через \d+|后重试|灰名单|серы\w+ спис",
    needles="grey|gray|graulist|greet|first|again in|again after|retry in|retry after|back in"
    "|back after|try in|try after|come back|in |dans |en |через|后重试|灰名单|спис|grise|gris",
)

#: What a 4xx is expected to say. A sentence without any of it is worth a look.
LATER = words(
    r"later|again|tempor|try|retry|busy|timed? ?out|local (?:error|problem)|unavailable|resource",
    r"not available|shutting down|closing|lookup|dns|resolv|verif|unverified|overload|load average",
    r"internal|error|problem|queue|defer|delay|maintenance|storage|disk|memory|connection|wait",
    r"sp.{1,2}ter|vor.{1,2}bergehend|erneut|plus tard|ult.rieurement|tarde|tempora|intent",
    r"pi.{1,2} tardi",
    r"позже|времен|повтор|稍后|稍後|重试|重試|暂时|暫時|繁忙",
)
