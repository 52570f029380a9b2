package gelfd

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxKeyword is the longest text the index takes as one term. A longer one makes it refuse the whole document.
const maxKeyword = 32766

// Doc is a message as it ends up in the index.
type Doc struct {
	// Fields is keyed by the names in the index: message, source, timestamp, level, full_message, and the additional ones
	// without their underscore. Values are string, int64, float64, and time.Time for timestamp. source is missing when the
	// payload had no host, timestamp when it had none that could be used; a [Server] then fills in the sender's address and
	// the time of arrival.
	Fields  map[string]any
	Dropped []Dropped // in the order of the payload
	Wrapped []string  // keys of integers beyond 64 bits signed, stored modulo 2^64
	More    bool      // something followed the JSON object, and was ignored
	Kind    Kind
	Raw     []byte // the text after inflation
}

// Decode judges one whole payload, compressed or not: what a datagram holds, or what chunks made. The error is always a
// *[Reject].
func Decode(payload []byte) (Doc, error) {
	text, kind, err := inflate(payload)
	if err != nil {
		return Doc{}, err
	}
	root, more, err := parse(text)
	if err != nil {
		return Doc{}, reject(BadJSON, "%v", err)
	}
	if root.kind == jNull {
		return Doc{}, reject(BadJSON, "null")
	}
	d := decoder{doc: Doc{Fields: make(map[string]any), More: more, Kind: kind, Raw: text}, sent: make(map[string]string)}
	if err := d.standard(root); err != nil {
		return Doc{}, err
	}
	for _, m := range root.members {
		d.additional(m)
	}
	if err := d.index(); err != nil {
		return Doc{}, err
	}
	return d.doc, nil
}

// decoder builds the fields in the server's order: the standard ones first, then all others as they come.
type decoder struct {
	doc   Doc
	names []string          // the keys of doc.Fields, in the order they were put there
	sent  map[string]string // for each of them the key in the payload
}

// standard checks and stores the fields that GELF itself defines.
func (d *decoder) standard(root value) error {
	host, hasHost := root.get("host")
	if hasHost && (host.kind != jString || blank(host.text)) {
		return reject(BadHost, "%v", host)
	}
	key, message, err := messageOf(root)
	if err != nil {
		return err
	}
	d.put("message", key, message)
	if hasHost {
		d.put("source", "host", trim(host.text))
	}
	if t, ok := timestampOf(root); ok {
		d.put("timestamp", "timestamp", t)
	}
	for _, name := range []string{"full_message", "file", "facility"} {
		if v, ok := root.get(name); ok {
			// Anything that is not a container has a text here, null and booleans too.
			if s := trim(v.scalarText()); s != "" {
				d.put(name, name, s)
			}
		}
	}
	for _, name := range []string{"line", "level"} {
		if v, ok := root.get(name); ok {
			if n := v.integer(); n > -1 {
				d.put(name, name, n)
			}
		}
	}
	return nil
}

// messageOf returns the key and the text of a message: short_message, or message when there is none or it is blank.
func messageOf(root value) (key, text string, err error) {
	key = "short_message"
	v, ok := root.get(key)
	if ok && v.kind != jString {
		return "", "", reject(BadMessage, "short_message is %v", v)
	}
	if !ok || blank(v.text) {
		key = "message"
		v, _ = root.get(key)
	}
	// Blank and empty when trimmed are not the same: one is about white space, the other about all characters up to U+0020.
	if v.kind != jString || blank(v.text) || trim(v.text) == "" {
		return "", "", reject(BadMessage, "missing or blank")
	}
	return key, trim(v.text), nil
}

// timestampOf returns the time in milliseconds, and false when the time of arrival counts.
func timestampOf(root value) (time.Time, bool) {
	v, _ := root.get("timestamp")
	if v.kind != jInt && v.kind != jFloat && v.kind != jString {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(trim(v.text), 64)
	if err != nil || !(seconds > 0) { // also for NaN
		return time.Time{}, false
	}
	return time.UnixMilli(int64(math.Floor(seconds*1000 + 0.5))).UTC(), true
}

// consumed says whether standard has dealt with a key for good.
func consumed(key string) bool {
	switch key {
	case "version", "host", "short_message", "timestamp":
		return true
	}
	return false
}

// reserved says whether a name may not be set by an additional field: the codec's own, then those the index keeps for itself.
func reserved(name string) bool {
	switch name {
	case "host", "short_message", "_id", "_ttl", "_source", "_all", "_index", "_type", "_score":
		return true
	}
	return false
}

// additional stores one member of the object under its name without the underscore, if the server would.
func (d *decoder) additional(m member) {
	if m.again {
		d.drop(m.name, FaultDuplicate)
	}
	if consumed(m.name) {
		return
	}
	name := m.name
	if len(name) > 1 {
		name = strings.TrimPrefix(name, "_")
	}
	name = trim(name)
	sent, taken := d.sent[name]
	if taken && sent == m.name {
		return // standard has stored it
	}
	if taken || name == "timestamp" { // the time of arrival is a timestamp too
		d.drop(m.name, FaultTaken)
		return
	}
	if reserved(name) {
		d.drop(m.name, FaultReserved)
		return
	}
	v, fault := d.store(m)
	if fault == "" && !validName(name) {
		fault = FaultName
	}
	if fault != "" {
		d.drop(m.name, fault)
		return
	}
	d.put(name, m.name, v)
}

// store returns what becomes of a value.
func (d *decoder) store(m member) (any, Fault) {
	switch v := m.value; v.kind {
	case jNull:
		return nil, FaultNull
	case jBool:
		return nil, FaultBool
	case jInt:
		if _, err := strconv.ParseInt(v.text, 10, 64); err != nil {
			d.doc.Wrapped = append(d.doc.Wrapped, m.name)
		}
		return v.integer(), ""
	case jFloat:
		return v.float(), ""
	case jString:
		if trim(v.text) == "" {
			return nil, FaultBlank
		}
		return trim(v.text), ""
	default:
		return v.String(), ""
	}
}

func (d *decoder) put(name, sent string, v any) {
	d.doc.Fields[name] = v
	d.names = append(d.names, name)
	d.sent[name] = sent
}

func (d *decoder) drop(name string, fault Fault) {
	d.doc.Dropped = append(d.doc.Dropped, Dropped{name, fault})
}

// index writes dots as underscores, where a name that has always been so wins, and applies the limit on keywords. message and
// full_message are split into words there, so the limit does not meet them.
func (d *decoder) index() error {
	for _, dotted := range d.names {
		if !strings.Contains(dotted, ".") {
			continue
		}
		v := d.doc.Fields[dotted]
		delete(d.doc.Fields, dotted)
		name := strings.ReplaceAll(dotted, ".", "_")
		if _, taken := d.doc.Fields[name]; taken {
			d.drop(d.sent[dotted], FaultCollision)
			continue
		}
		d.doc.Fields[name] = v
	}
	for name, v := range d.doc.Fields {
		if s, ok := v.(string); ok && len(s) > maxKeyword && name != "message" && name != "full_message" {
			return reject(BadIndex, "%s has %d bytes, %d are the most", name, len(s), maxKeyword)
		}
	}
	return nil
}

func validName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.@-", r)
	}) < 0
}

// trim removes what Java's String.trim does.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// blank says whether s is white space throughout, in the sense of Java's Character.isWhitespace: without the spaces that do
// not break, with the four separators below U+0020.
func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		switch {
		case r == '\u0085' || r == '\u00a0' || r == '\u2007' || r == '\u202f':
			return true
		case 0x1c <= r && r <= 0x1f:
			return false
		}
		return !unicode.IsSpace(r)
	}) < 0
}

// scalarText is a value's text where a text is wanted: "" for containers.
func (v value) scalarText() string {
	if v.kind == jObject || v.kind == jArray {
		return ""
	}
	return v.text
}

// integer is a value's number where an integer is wanted: fractions are cut off, and -1 stands for everything else. An integer
// that does not fit keeps its low 64 bits.
func (v value) integer() int64 {
	switch v.kind {
	case jBool:
		if v.text == "true" {
			return 1
		}
		return 0
	case jInt:
		n, _ := new(big.Int).SetString(v.text, 10)
		return int64(n.And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
	case jFloat, jString:
		f := v.float()
		switch {
		case math.IsNaN(f):
			return -1
		case f >= math.MaxInt64:
			return math.MaxInt64
		case f <= math.MinInt64:
			return math.MinInt64
		}
		return int64(f)
	}
	return -1
}

// float is a number's value; too large ones are infinite, texts that are no number NaN.
func (v value) float() float64 {
	f, err := strconv.ParseFloat(trim(v.text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN()
	}
	return f
}
