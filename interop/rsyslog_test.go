//go:build linux

package interop

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/wholelog/wholelog/internal/fake/authority"
)

// received is a message as rsyslog understood it.
type received struct {
	PRI, Version, Time, Host, App, ProcID, MsgID, SD, Msg string

	Raw    string // the message as it came
	Parsed struct {
		Input string
		SD    map[string]map[string]string `json:"rfc5424-sd"` // structured data
		CEE   map[string]any               // the document behind @cee:
	}
}

// rsyslog is an rsyslogd and where it listens. It may end and be started again; each life has a file of its own, because whoever is
// killed may leave half a line.
type rsyslog struct {
	*program
	dir, udp, tcp string // ports
	tls, mutual   string // ports; "": not encrypted
	template      string // "json", or "msg": the texts alone
	lives         int
	file          string // of this life
	offset        int64  // what was read of it
}

// startRsyslog starts a receiver of plain text.
func startRsyslog(t *testing.T) *rsyslog {
	t.Helper()
	r := newRsyslog(t)
	r.start(t)
	return r
}

// newRsyslog prepares a receiver of plain text.
func newRsyslog(t *testing.T) *rsyslog {
	t.Helper()
	version(t, find(t, "rsyslogd"), "-v")
	r := &rsyslog{dir: workDir(t), udp: strconv.Itoa(freePort(t)), tcp: strconv.Itoa(freePort(t)), template: "json"}
	script(t, r.dir, "rsyslog.conf")
	return r
}

// startRsyslogTLS starts a receiver that has a certificate of an authority, and that trusts clients which have one of it too.
func startRsyslogTLS(t *testing.T, a *authority.Authority, cert tls.Certificate) *rsyslog {
	t.Helper()
	r := newRsyslog(t)
	r.tls, r.mutual = strconv.Itoa(freePort(t)), strconv.Itoa(freePort(t))
	roots, leaf, key := a.Files(cert)
	for _, path := range []string{roots, leaf, key} {
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(r.path(filepath.Base(path)), data, 0o644) // for whom the programs run as
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	script(t, r.dir, "rsyslog_tls.conf")
	r.start(t)
	return r
}

// start begins a life. It returns when all sockets are there.
func (r *rsyslog) start(t *testing.T) {
	t.Helper()
	r.lives, r.offset = r.lives+1, 0
	r.file = r.path(fmt.Sprint("messages-", r.lives))
	conf := "rsyslog.conf"
	if r.tls != "" {
		conf = "rsyslog_tls.conf"
	}
	cmd := command(r.dir, find(t, "rsyslogd"), "-n", "-f", r.path(conf), "-i", r.path("pid"))
	cmd.Env = append(cmd.Env, "RX_WORK="+r.dir, "RX_FILE="+r.file, "RX_TEMPLATE="+r.template,
		"RX_UDP="+r.udp, "RX_TCP="+r.tcp, "RX_TLS="+r.tls, "RX_MUTUAL="+r.mutual)
	r.program = run(t, cmd)
	sockets := [][2]string{
		{"tcp", "127.0.0.1:" + r.tcp}, {"unix", r.path("stream")}, {"unixgram", r.path("datagram")}, {"unixgram", r.path("bare")},
	}
	if r.tls != "" {
		sockets = append(sockets, [2]string{"tcp", "127.0.0.1:" + r.tls}, [2]string{"tcp", "127.0.0.1:" + r.mutual})
	}
	// imudp has its socket before imtcp, and cannot be asked.
	until(t, "rsyslogd listens", func() bool {
		select {
		case <-r.exited:
			t.Fatalf("rsyslogd has ended: %v", r.err)
		default:
		}
		for _, s := range sockets {
			c, err := net.Dial(s[0], s[1])
			if err != nil {
				return false
			}
			c.Close()
		}
		return true
	})
}

// path is that of something in its directory, such as the sockets stream, datagram and bare.
func (r *rsyslog) path(name string) string { return filepath.Join(r.dir, name) }

// halt stops it with SIGSTOP, and returns when it has stopped. SIGCONT has it go on.
func (r *rsyslog) halt(t *testing.T) {
	t.Helper()
	r.signal(t, syscall.SIGSTOP)
	until(t, "all threads have stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", r.cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			t.Fatal("no threads: ", err)
		}
		for _, path := range threads {
			stat, err := os.ReadFile(path)
			_, state, _ := bytes.Cut(stat, []byte(") ")) // behind the name
			if err != nil || len(state) == 0 || state[0] != 'T' {
				return false
			}
		}
		return true
	})
}

// messages waits for n messages of this life, behind those it returned before, and returns them.
func (r *rsyslog) messages(t *testing.T, n int) (all []received) {
	t.Helper()
	lines := r.lines(t, n)
	for _, line := range lines {
		var m received
		if err := json.Unmarshal(line, &m); err != nil {
			t.Errorf("%v: %q", err, line)
		}
		all = append(all, m)
	}
	if len(all) != n {
		t.Errorf("%d messages, want %d", len(all), n)
	}
	return all
}

// lines waits for n lines of this life, behind those it returned before, and returns what there is, without what ends a line. Half a
// line at the end is none.
func (r *rsyslog) lines(t *testing.T, n int) [][]byte {
	t.Helper()
	var text []byte
	count := 0
	until(t, fmt.Sprint(n, " lines"), func() bool {
		more, err := readFrom(r.file, r.offset+int64(len(text)))
		text = append(text, more...)
		count += bytes.Count(more, []byte{'\n'})
		return count >= n && (err == nil || n == 0) // without a message there is no file
	})
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	r.offset += int64(len(whole))
	return bytes.Split(whole, []byte{'\n'})[:count]
}

// readFrom returns what a file holds from offset on.
func readFrom(path string, offset int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
