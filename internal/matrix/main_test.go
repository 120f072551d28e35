package main

import (
	"strings"
	"testing"
)

// The servers of an engine follow each other, the installed server first.
func TestParse(t *testing.T) {
	servers, err := parse([]byte("postgres HOLDFAST_POSTGRES=/old/bin\nredis HOLDFAST_REDIS=/new/redis-server\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(servers) != len(engines)+2 {
		t.Errorf("got %d servers: %v", len(servers), servers)
	}
	if first, second := servers[0], servers[1]; first.setting != "" || second.engine.name != first.engine.name || second.setting != "HOLDFAST_REDIS=/new/redis-server" {
		t.Errorf("got %+v, %+v", first, second)
	}
	if _, err := parse([]byte("oracle X=/y\n")); err == nil || !strings.Contains(err.Error(), `"oracle"`) {
		t.Errorf("an unknown engine: %v", err)
	}
}

func TestTable(t *testing.T) {
	var good, bad row
	for r, text := range map[*row]string{
		&good: `{"Action":"pass","Test":"TestContract"}{"Action":"skip","Test":"TestContract/slots"}{"Action":"pass"}`,
		&bad:  `{"Action":"output","Test":"TestContract","Output":"two holders\n"}{"Action":"fail","Test":"TestContract"}{"Action":"fail"}`,
	} {
		if err := r.count([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	good.server, bad.server = "Redis 9", "Redis 10"
	good.verified, good.report.Grants = true, 1234
	got := string(table([]row{good, bad}))
	for _, want := range []string{
		"| Redis 9 | 1 | 1 | 0 | 1,234 locks, 0 violations | passed |\n",
		"| Redis 10 | 0 | 0 | 1 | – | **failed** |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	if bad.log != "two holders\n" {
		t.Errorf("of the failed test the log is %q", bad.log)
	}
}

// A server on which no test ran is no success.
func TestNothingRan(t *testing.T) {
	if (row{}).ok() {
		t.Error("a row without tests is a success")
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-for=x"}, {"-only=redis", "-save=x"}} {
		if err := execute(t.Context(), args, t.Output()); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
