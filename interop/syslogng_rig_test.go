//go:build linux

package interop

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/syslog"
)

// syslogNG is a running syslog-ng.
type syslogNG struct {
	*program
	dir   string
	env   []string
	port  map[string]string // of each variable in syslog-ng.conf
	trust *tls.Config       // by which its certificate is verified
	read  int               // bytes of the messages that more has returned
}

// startSyslogNG starts the syslog-ng that .ci/interop has unpacked, or else the one that is installed.
func startSyslogNG(t *testing.T) *syslogNG {
	t.Helper()
	s := &syslogNG{dir: workDir(t), port: map[string]string{}}
	s.env = append(s.env, "SNG_WORK="+s.dir)
	for _, name := range []string{"SNG_NETWORK", "SNG_NETWORK_5424", "SNG_SYSLOG", "SNG_SYSLOG_TLS"} {
		s.port[name] = strconv.Itoa(freePort(t))
		s.env = append(s.env, name+"="+s.port[name])
	}
	s.certify(t)
	script(t, s.dir, "syslog-ng.conf")
	s.install(t)
	s.start(t)
	return s
}

// install copies the unpacked program to where the unprivileged may run it.
func (s *syslogNG) install(t *testing.T) {
	t.Helper()
	const unpacked = "../.cache/debian/usr"
	if _, err := os.Stat(unpacked); err != nil {
		return
	}
	for _, dir := range []string{"sbin", "lib/syslog-ng"} {
		if err := os.CopyFS(filepath.Join(s.dir, dir), os.DirFS(filepath.Join(unpacked, dir))); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts syslog-ng, and again after it was stopped.
func (s *syslogNG) start(t *testing.T) {
	t.Helper()
	in := func(name string) string { return filepath.Join(s.dir, name) }
	path, lib := in("sbin/syslog-ng"), in("lib/syslog-ng")
	args := []string{"--module-path=" + lib + "/3.38"}
	if _, err := os.Stat(path); err != nil {
		path, args = find(t, "syslog-ng"), nil
	}
	cmd := command(s.dir, path, append(args, "--foreground", "--stderr", "--no-caps", "--cfgfile="+in("syslog-ng.conf"),
		"--persist-file="+in("persist"), "--pidfile="+in("pid"), "--control="+in("control"))...)
	cmd.Env = append(append(cmd.Env, s.env...), "LD_LIBRARY_PATH="+lib)
	s.program = run(t, cmd)
	until(t, "syslog-ng listens", func() bool {
		select {
		case <-s.exited:
			t.Fatalf("syslog-ng has ended: %v", s.err)
		default:
		}
		return strings.Contains(s.out.String(), "syslog-ng starting up")
	})
	said := s.out.String()
	t.Log("version: " + said[strings.Index(said, "syslog-ng starting up"):])
}

// certify gives syslog-ng a certificate of 127.0.0.1.
func (s *syslogNG) certify(t *testing.T) {
	t.Helper()
	ca := authority.New(t)
	_, cert, key := ca.Files(ca.Issue(time.Hour, "127.0.0.1"))
	s.trust = &tls.Config{RootCAs: ca.Pool()}
	for _, path := range []string{cert, key} {
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, filepath.Base(path)), data, 0o644) // for whom the programs run as
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// profile returns the target of one of the sources in syslog-ng.conf, and o with what that source needs.
func (s *syslogNG) profile(source string, o syslog.Options) (target string, _ syslog.Options) {
	target = map[string]string{
		"network_tcp":  "tcp://127.0.0.1:" + s.port["SNG_NETWORK"],
		"network_udp":  "udp://127.0.0.1:" + s.port["SNG_NETWORK"],
		"network_5424": "tcp://127.0.0.1:" + s.port["SNG_NETWORK_5424"],
		"syslog_tcp":   "tcp://127.0.0.1:" + s.port["SNG_SYSLOG"],
		"syslog_udp":   "udp://127.0.0.1:" + s.port["SNG_SYSLOG"],
		"syslog_tls":   "tls://127.0.0.1:" + s.port["SNG_SYSLOG_TLS"],
		"unix_stream":  "unix://" + filepath.Join(s.dir, "stream"),
		"unix_dgram":   "unix://" + filepath.Join(s.dir, "dgram"),
	}[source]
	switch source {
	case "network_tcp":
		o.Framing, o.Format = syslog.Newline, syslog.RFC3164
	case "network_udp":
		o.Format = syslog.RFC3164
	case "network_5424":
		o.Framing = syslog.Newline
	case "syslog_tls":
		o.TLSConfig = s.trust
	}
	return target, o
}

// open makes a handler for one of the sources.
func (s *syslogNG) open(t *testing.T, source string, o syslog.Options) *syslog.Handler {
	t.Helper()
	target, o := s.profile(source, o)
	return openSyslog(t, target, o)
}

// openSyslog makes a handler whose troubles end up in the test's log, unless o has another place for them.
func openSyslog(t *testing.T, target string, o syslog.Options) *syslog.Handler {
	t.Helper()
	if o.Delivery.OnError == nil {
		o.Delivery.OnError = func(err error) { t.Logf("handler: %v", err) }
	}
	h, err := syslog.NewHandler(target, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // for tests that fail before they do it
	return h
}

// parsed is a message as syslog-ng took it apart.
type parsed struct {
	Source, PRI, Time, Host, App, ProcID, MsgID, SD, Msg string

	SDATA map[string]any `json:"_SDATA"` // of STRUCTURED-DATA
	Cee   map[string]any `json:"_cee"`   // of a text that begins with @cee:
}

// params are the values of STRUCTURED-DATA, by SD-ID, a dot and PARAM-NAME. syslog-ng takes the dots in names for levels.
func (p parsed) params() map[string]string {
	all := map[string]string{}
	flatten(all, "", p.SDATA)
	return all
}

// flatten fills all with the strings in tree.
func flatten(all map[string]string, prefix string, tree map[string]any) {
	for name, x := range tree {
		switch x := x.(type) {
		case map[string]any:
			flatten(all, prefix+name+".", x)
		default:
			all[prefix+name] = fmt.Sprint(x)
		}
	}
}

// more returns the messages that have come since it was last called. No sender may ever provoke what syslog-ng makes of a message that
// breaks the grammar.
func (s *syslogNG) more(t *testing.T) (all []parsed) {
	t.Helper()
	text, _ := os.ReadFile(filepath.Join(s.dir, "messages")) // which the first message makes
	text = text[min(s.read, len(text)) : bytes.LastIndexByte(text, '\n')+1]
	s.read += len(text)
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte("Error processing log message")) {
			t.Fatalf("syslog-ng says %.1000s", line)
		}
		var m parsed
		if err := json.Unmarshal(line, &m); err != nil {
			t.Errorf("%v: %q", err, line)
		}
		all = append(all, m)
	}
	return all
}

// next waits for n more messages, and returns them.
func (s *syslogNG) next(t *testing.T, n int) (all []parsed) {
	t.Helper()
	until(t, fmt.Sprintf("%d messages", n), func() bool {
		all = append(all, s.more(t)...)
		return len(all) >= n
	})
	if len(all) != n {
		t.Fatalf("%d messages, want %d", len(all), n)
	}
	return all
}
