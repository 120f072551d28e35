package refused

import (
	"errors"
	"strings"
	"testing"
)

// TestRefusals reads what servers of all versions say.
func TestRefusals(t *testing.T) {
	const sha = "9e107d9d372bb6826bd81d3542a419d6e277d9aa"
	for said, want := range map[string]string{
		"OOM command not allowed when used memory > 'maxmemory'. script: " + sha + ", on @user_script:20.":                                "OOM command not allowed when used memory > 'maxmemory'. (",
		"ERR Error running script (call to f_" + sha + "): @user_script:20: @user_script: 20: -OOM command not allowed when used memory.": "OOM command not allowed when used memory. (",
		"Error running script (call to f_" + sha + "): @user_script:7: -READONLY You can't write against a read only replica.":            "READONLY You can't write against a read only replica. (",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":                                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. (",
		"LOADING Redis is loading the dataset in memory":                                                                                  "LOADING Redis is loading the dataset in memory (",
		"CROSSSLOT Keys in request don't hash to the same slot":                                                                           "CROSSSLOT Keys in request don't hash to the same slot (the server is part of a Cluster: use a client for Clusters",
		"CLUSTERDOWN The cluster is down": "CLUSTERDOWN The cluster is down (",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE. (",
		"NOAUTH Authentication required.": "NOAUTH Authentication required. (",
		"user_script:131: attempt to compare nil with number script: " + sha + ", on @user_script:131.": "attempt to compare nil with number",
		"dial tcp 127.0.0.1:1: connect: connection refused":                                             "dial tcp 127.0.0.1:1: connect: connection refused",
	} {
		raw := errors.New(said)
		err := Explain(raw, "", []string{"k"})
		if !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), sha) || strings.Contains(err.Error(), "user_script") || !errors.Is(err, raw) {
			t.Errorf("%q became %q, want %q and a hint", said, err, want)
		}
	}
}
