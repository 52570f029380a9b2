package syslogd

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Message is a message taken apart. What was NILVALUE is empty.
type Message struct {
	Raw      string
	Format   string // "rfc5424" or "rfc3164"
	Facility int
	Severity int
	Time     time.Time // of RFC 3164 in the year 0 and local time
	Hostname string
	AppName  string // of RFC 3164 the TAG
	ProcID   string
	MsgID    string
	Elements []Element
	BOM      bool
	Text     string
}

// Element is an SD-ELEMENT.
type Element struct {
	ID     string
	Params []Param
}

// Param is an SD-PARAM, its value without escapes.
type Param struct{ Name, Value string }

// Param returns the value of the first parameter of that name in the element id.
func (m *Message) Param(id, name string) (string, bool) {
	for _, e := range m.Elements {
		for _, p := range e.Params {
			if e.ID == id && p.Name == name {
				return p.Value, true
			}
		}
	}
	return "", false
}

// Parse takes a message of RFC 5424 apart, as strictly as its grammar (section 6) and the texts beside it are, and one of RFC 3164 as
// receivers do. Which of them it is, the version behind PRI tells.
func Parse(raw string) (Message, error) {
	p := parser{rest: raw}
	m := Message{Raw: raw}
	if err := p.pri(&m); err != nil {
		return m, err
	}
	if rest, ok := strings.CutPrefix(p.rest, "1 "); ok {
		p.rest = rest
		return m, p.rfc5424(&m)
	}
	return m, p.rfc3164(&m)
}

type parser struct{ rest string }

// pri reads PRI: a number from 0 to 191 without leading zeros.
func (p *parser) pri(m *Message) error {
	digits, rest, ok := strings.Cut(strings.TrimPrefix(p.rest, "<"), ">")
	n, err := strconv.Atoi(digits)
	if !ok || !strings.HasPrefix(p.rest, "<") || err != nil || strconv.Itoa(n) != digits || n < 0 || n > 191 {
		return reject(BadPRI, "%.10q", p.rest)
	}
	m.Facility, m.Severity = n/8, n%8
	p.rest = rest
	return nil
}

func (p *parser) rfc5424(m *Message) error {
	m.Format = "rfc5424"
	stamp, err := p.field("TIMESTAMP", len("2006-01-02T15:04:05.000000+00:00"))
	if err != nil {
		return err
	}
	if m.Time, err = parseTime(stamp); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		limit int
		to    *string
	}{{"HOSTNAME", 255, &m.Hostname}, {"APP-NAME", 48, &m.AppName}, {"PROCID", 128, &m.ProcID}, {"MSGID", 32, &m.MsgID}} {
		if *f.to, err = p.field(f.name, f.limit); err != nil {
			return err
		}
	}
	if err := p.structure(m); err != nil {
		return err
	}
	// The grammar allows a message to end here, but some receivers throw the header away then.
	rest, ok := strings.CutPrefix(p.rest, " ")
	if !ok {
		return reject(BadStructure, "%.10q and no space stands behind STRUCTURED-DATA", p.rest)
	}
	return m.text(rest)
}

// field reads a field of the header and the space behind it.
func (p *parser) field(name string, limit int) (string, error) {
	s, rest, ok := strings.Cut(p.rest, " ")
	if !ok || s == "" || len(s) > limit || strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' }) {
		return "", reject(BadHeader, "%s is %.300q", name, s)
	}
	p.rest = rest
	if s == "-" {
		s = ""
	}
	return s, nil
}

// parseTime reads TIMESTAMP, which is narrower than RFC 3339. Without one, receivers lose the header.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$`).MatchString(s) {
		return t, reject(BadTime, "%q", s)
	}
	return t, nil
}

// structure reads STRUCTURED-DATA.
func (p *parser) structure(m *Message) error {
	if rest, ok := strings.CutPrefix(p.rest, "-"); ok {
		p.rest = rest
		return nil
	}
	seen := make(map[string]bool)
	for strings.HasPrefix(p.rest, "[") {
		p.rest = p.rest[1:]
		e, err := p.element()
		if err != nil {
			return err
		}
		if seen[e.ID] {
			return reject(BadStructure, "%s stands there twice", e.ID)
		}
		seen[e.ID] = true
		m.Elements = append(m.Elements, e)
	}
	if len(m.Elements) == 0 {
		return reject(BadStructure, "%.10q begins none", p.rest)
	}
	return nil
}

// element reads an SD-ELEMENT from its name on.
func (p *parser) element() (e Element, err error) {
	if e.ID, err = p.name(); err != nil {
		return e, err
	}
	for strings.HasPrefix(p.rest, " ") {
		p.rest = p.rest[1:]
		param, err := p.param()
		if err != nil {
			return e, err
		}
		e.Params = append(e.Params, param)
	}
	rest, ok := strings.CutPrefix(p.rest, "]")
	if !ok {
		return e, reject(BadStructure, "%.10q ends no element", p.rest)
	}
	p.rest = rest
	return e, nil
}

// name reads an SD-NAME.
func (p *parser) name() (string, error) {
	n := strings.IndexFunc(p.rest, func(r rune) bool { return r < '!' || r > '~' || r == '=' || r == ']' || r == '"' })
	if n < 1 || n > 32 {
		return "", reject(BadStructure, "%.40q begins with no name", p.rest)
	}
	name := p.rest[:n]
	p.rest = p.rest[n:]
	return name, nil
}

// param reads NAME="VALUE". In a value only " \ and ] are escaped; a backslash in front of anything else is an error of the sender's.
func (p *parser) param() (Param, error) {
	name, err := p.name()
	if err != nil {
		return Param{}, err
	}
	rest, ok := strings.CutPrefix(p.rest, `="`)
	if !ok {
		return Param{}, reject(BadStructure, "%.10q is no value", p.rest)
	}
	var value strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			p.rest = rest[i+1:]
			return Param{name, value.String()}, readable(value.String())
		case c == ']':
			return Param{}, reject(BadStructure, "the value of %s holds a bare ]", name)
		case c == '\\':
			i++
			if i == len(rest) || !strings.ContainsRune(`"\]`, rune(rest[i])) {
				return Param{}, reject(BadStructure, "the value of %s holds a bare backslash", name)
			}
			value.WriteByte(rest[i])
		default:
			value.WriteByte(c)
		}
	}
	return Param{}, reject(BadStructure, "the value of %s does not end", name)
}

// text takes MSG.
func (m *Message) text(s string) error {
	if rest, ok := strings.CutPrefix(s, "\uFEFF"); ok {
		m.BOM, s = true, rest
	}
	m.Text = s
	return readable(s)
}

// readable refuses what receivers split, change or show as something else: control characters, line ends, and bytes that are no UTF-8.
func readable(s string) error {
	if !utf8.ValidString(s) {
		return reject(BadText, "%.100q is no UTF-8", s)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' }) {
		return reject(BadText, "%.100q holds a control character or a line end", s)
	}
	return nil
}

// bsd is RFC 3164, section 4.1: time, HOSTNAME, TAG, and the number of the process in brackets. For rsyslog a word is a HOSTNAME only if
// it is made of these characters and ends in a letter or digit; any other is the TAG. An address behind a comma it does not take either,
// but syslog-ng does, and a sender must ask for that. On local sockets there is no HOSTNAME.
const bsd = `^([A-Z][a-z]{2} [ 123]\d \d\d:\d\d:\d\d) (?:([\w.-]*[0-9A-Za-z](?:,[\d.a-f:]+)?) )?([!-9;-Z\\^-~]{1,32})(?:\[([!-Z\\^-~]+)\])?: `

func (p *parser) rfc3164(m *Message) error {
	m.Format = "rfc3164"
	parts := regexp.MustCompile(bsd).FindStringSubmatch(p.rest)
	if parts == nil {
		return reject(BadHeader, "%.80q", p.rest)
	}
	var err error
	if m.Time, err = time.ParseInLocation(time.Stamp, parts[1], time.Local); err != nil {
		return reject(BadTime, "%q", parts[1])
	}
	m.Hostname, m.AppName, m.ProcID = parts[2], parts[3], parts[4]
	return m.text(p.rest[len(parts[0]):])
}
