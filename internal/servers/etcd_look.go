package servers

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// A Key is an entry of etcd.
type Key struct {
	Name  []byte `json:"key"`
	Lease string `json:"lease"` // with which it ends, "" for none
}

// Keys returns all keys in etcd.
func (e *Etcd) Keys() []Key {
	e.tb.Helper()
	var got struct {
		Keys []Key `json:"kvs"`
	}
	all := base64.StdEncoding.EncodeToString([]byte{0}) // from the first key on, without an end
	e.must("/v3/kv/range", fmt.Sprintf(`{"key": %q, "range_end": %[1]q, "keys_only": true}`, all), &got)
	return got.Keys
}

// Leases returns the remaining seconds of each lease of etcd, by the id of the lease.
func (e *Etcd) Leases() map[string]int {
	e.tb.Helper()
	var got struct {
		Leases []struct{ ID string }
	}
	e.must("/v3/lease/leases", "{}", &got)
	seconds := make(map[string]int)
	for _, l := range got.Leases {
		var one struct{ TTL string }
		e.must("/v3/lease/timetolive", fmt.Sprintf(`{"ID": %q}`, l.ID), &one)
		if left, err := strconv.Atoi(one.TTL); err == nil && left >= 0 {
			seconds[l.ID] = left
		}
	}
	return seconds
}

// must retries until etcd answers. etcd does not answer while etcd has no leader.
func (e *Etcd) must(path, body string, answer any) {
	e.tb.Helper()
	Await(e.tb, path+" of "+e.Direct(), func() error {
		text, err := e.fetch(http.MethodPost, e.scheme()+e.Direct()+path, body)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, answer)
	})
}
