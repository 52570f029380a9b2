package delivery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/jitter"
)

func TestOptionsValidate(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string // "": valid
	}{
		{Options{}, ""},
		{Options{QueueBytes: 512 << 10}, ""},
		{Options{QueueBytes: 512<<10 - 1}, "QueueBytes: 524287 is less than 524288 (512 KiB)"},
		{Options{QueueBytes: -1}, "QueueBytes: -1 is less than 524288 (512 KiB)"},
		{Options{Overflow: DropOldest}, ""},
		{Options{Overflow: 3}, "Overflow: Overflow(3) is not known"},
		{Options{MaxBlock: 1, RetryFor: 1, DialTimeout: 1, SendTimeout: 1, CloseTimeout: 1, SyncTimeout: 1, Sync: true, Tries: 1}, ""},
		{Options{MaxBlock: -1}, "MaxBlock: -1ns is negative"},
		{Options{RetryFor: -time.Second}, "RetryFor: -1s is negative"},
		{Options{DialTimeout: -time.Second}, "DialTimeout: -1s is negative"},
		{Options{SendTimeout: -time.Second}, "SendTimeout: -1s is negative"},
		{Options{CloseTimeout: -time.Second}, "CloseTimeout: -1s is negative"},
		{Options{SyncTimeout: -time.Second}, "SyncTimeout: -1s is negative"},
		{Options{Tries: -1}, "Tries: -1 is negative"},
		{Options{Backoff: jitter.Backoff{Base: 1, Max: 1, Factor: 1, Mode: jitter.None}}, ""},
		{Options{Backoff: jitter.Backoff{Base: -1}}, "Backoff.Base: -1ns is negative"},
		{Options{Backoff: jitter.Backoff{Max: -1}}, "Backoff.Max: -1ns is negative"},
		{Options{Backoff: jitter.Backoff{Factor: 0.99}}, "Backoff.Factor: 0.99 is not a number from 1 up"},
		{Options{Backoff: jitter.Backoff{Factor: -2}}, "Backoff.Factor: -2 is not a number from 1 up"},
		{Options{Backoff: jitter.Backoff{Factor: math.NaN()}}, "Backoff.Factor: NaN is not a number from 1 up"},
		{Options{Backoff: jitter.Backoff{Factor: math.Inf(1)}}, "Backoff.Factor: +Inf is not a number from 1 up"},
		{Options{Backoff: jitter.Backoff{Mode: 3}}, "Backoff.Mode: Mode(3) is not known"},
		{Options{Reserve: -1}, ""},
		{Options{Reserve: 0.5, RecordRate: 1, ByteRate: 1, Summary: true}, ""},
		{Options{Reserve: 0.51}, "Reserve: 0.51 is more than half"},
		{Options{Reserve: math.NaN()}, "Reserve: NaN is more than half"},
		{Options{RecordRate: -1}, "RecordRate: -1 is negative"},
		{Options{ByteRate: -1}, "ByteRate: -1 is negative"},
	} {
		err := tt.o.Validate()
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%v: error %q, want %q", tt.o, got, tt.want)
		}
	}
}

// Handlers put the path to the option in front.
func TestValidateErrorCanBePrefixed(t *testing.T) {
	err := fmt.Errorf("gelf: Delivery.%w", Options{Tries: -1}.Validate())
	if err.Error() != "gelf: Delivery.Tries: -1 is negative" {
		t.Error(err)
	}
}

var some = Options{
	QueueBytes: 1 << 20, Overflow: DropOldest, MaxBlock: 50 * time.Millisecond, Reserve: -1,
	Backoff: jitter.Backoff{Base: time.Second, Mode: jitter.Equal}, Sync: true, OnDrop: func(Drop) {},
}

func TestOptionsPrint(t *testing.T) {
	const (
		text = "delivery.Options{QueueBytes: 1048576, Overflow: DropOldest, MaxBlock: 50ms, Reserve: -1, " +
			"Backoff: {Base: 1s, Mode: Equal}, Sync: true, OnDrop: set, OnError: unset}"
		zero = "delivery.Options{OnDrop: unset, OnError: unset}"
		js   = `{"QueueBytes":1048576,"Overflow":"DropOldest","MaxBlock":"50ms","Reserve":-1,` +
			`"Backoff":{"Base":"1s","Mode":"Equal"},"Sync":true,"OnDrop":"set","OnError":"unset"}`
	)
	for format, want := range map[string]string{"%v": text, "%+v": text, "%#v": text, "%s": text} {
		if got := fmt.Sprintf(format, some); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", format, got, want)
		}
		if got := fmt.Sprintf(format, &some); got != want {
			t.Errorf("%s of a pointer:\ngot  %s\nwant %s", format, got, want)
		}
	}
	if got := (Options{}).String(); got != zero {
		t.Errorf("zero: %s", got)
	}
	got, err := json.Marshal(some)
	if err != nil || string(got) != js {
		t.Errorf("JSON:\ngot  %s, %v\nwant %s", got, err, js)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "o", some)
	if !strings.Contains(out.String(), `"o":`+js) {
		t.Errorf("slog: %s", out.String())
	}
}

// A field that does not print is a field that was forgotten.
func TestOptionsPrintEveryField(t *testing.T) {
	o := Options{
		1, 1, 1, 1, 1, 1, 1, 1, jitter.Backoff{Base: 1}, 1, 1, 1, true, 1, true, func(Drop) {}, func(error) {},
	}
	var m map[string]any
	j, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(j, &m); err != nil {
		t.Fatal(err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Options]()) {
		if _, ok := m[f.Name]; !ok {
			t.Errorf("%s is missing in %s", f.Name, j)
		}
	}
}

func TestOverflowString(t *testing.T) {
	var got []string
	for _, o := range []Overflow{Block, DropNewest, DropOldest, 3, 255} {
		got = append(got, o.String())
	}
	if want := []string{"Block", "DropNewest", "DropOldest", "Overflow(3)", "Overflow(255)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
