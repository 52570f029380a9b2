package delivery

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

func TestStatsJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	s := Stats{
		Accepted: 1, Delivered: 2, Dropped: 3, Pending: 4, Own: 5, Resent: 6, Diverted: 7, Truncated: 8, Repaired: 9, Unconfirmed: 10,
		Bytes: 11, PendingBytes: 12, Waits: 13, WaitTime: 14, OldestPending: 15, LastDelivered: at, Reconnects: 16, Lookups: 17,
		LookupErrors: 18, AnswerAge: time.Minute,
		Reasons: map[Reason]uint64{ReasonQueueFull: 1, ReasonClosed: 2},
		Endpoints: []EndpointStats{
			{
				Addr: netip.MustParseAddrPort("[2001:db8::1]:12201"), State: "up", Since: at, Weight: 100, Picked: 1, Delivered: 2, Resent: 3,
				Bytes: 4, PendingBytes: 5, Errors: map[Cause]uint64{CausePeerClosed: 1, CauseMTU: 2}, LastError: "reset",
			},
			{State: "gone"},
		},
	}
	want := `{"Accepted":1,"Delivered":2,"Dropped":3,"Pending":4,"Own":5,"Resent":6,"Diverted":7,"Truncated":8,"Repaired":9,"Unconfirmed":10,` +
		`"Bytes":11,"PendingBytes":12,"Waits":13,"WaitTime":14,"OldestPending":15,"LastDelivered":"2026-01-02T03:04:05.000000678Z",` +
		`"Reconnects":16,"Lookups":17,"LookupErrors":18,"AnswerAge":60000000000,"Reasons":{"closed":2,"queue_full":1},"Endpoints":[` +
		`{"Addr":"[2001:db8::1]:12201","State":"up","Since":"2026-01-02T03:04:05.000000678Z","Weight":100,"Picked":1,"Delivered":2,"Resent":3,` +
		`"Bytes":4,"PendingBytes":5,"Errors":{"mtu":2,"peer_closed":1},"LastError":"reset"},` +
		`{"Addr":"","State":"gone","Since":"0001-01-01T00:00:00Z","Weight":0,"Picked":0,"Delivered":0,"Resent":0,` +
		`"Bytes":0,"PendingBytes":0,"Errors":null,"LastError":""}]}`
	got, err := json.Marshal(s)
	if err != nil || string(got) != want {
		t.Errorf("\ngot  %s, %v\nwant %s", got, err, want)
	}
	var back Stats
	if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("read back: %+v, %v", back, err)
	}
	if got, err := json.Marshal(Stats{}); err != nil || len(got) == 0 {
		t.Errorf("zero: %s, %v", got, err)
	}
}
