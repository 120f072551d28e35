package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// The servers of an engine follow each other, the installed server first.
func TestParse(t *testing.T) {
	servers, err := parse([]byte("postgres HOLDFAST_POSTGRES=/old/bin\nredis HOLDFAST_REDIS=/new/redis-server\n"))
	if err != nil {
		t.Fatal(err)
	}
	installed := len(slices.DeleteFunc(slices.Clone(engines), func(e engine) bool { return e.url != "" }))
	if len(servers) != installed+2 {
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

// The table of look-alikes says what was refused, and with which words.
func TestLookalikes(t *testing.T) {
	passed := row{alike: true, server: "good 1", verified: true, report: report{Grants: 1234}}
	refused := row{alike: true, server: "other 2", refusal: "it does not exclude"}
	broken := row{alike: true, server: "bad 3", verified: true, broken: true, report: report{Grants: 5, Violations: map[string]int{"exclusion": 2}}}
	silent := row{alike: true, server: "silent 4", failed: 1}
	for r, want := range map[*row]bool{&passed: true, &refused: true, &broken: false, &silent: false} {
		if r.ok() != want {
			t.Errorf("%s: ok is %t", r.server, r.ok())
		}
	}
	got := string(table([]row{passed, refused, broken, silent}))
	for _, want := range []string{
		"| good 1 | 1,234 locks, 0 violations |\n",
		"| other 2 | refused: it does not exclude |\n",
		"| bad 3 | **failed** 5 locks, 2 violations |\n",
		"| silent 4 | **failed** – |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// A look-alike may not start, or may speak something else.
func TestMeet(t *testing.T) {
	for _, program := range []string{"/bin/false", "/no/such/program"} {
		var r row
		err := r.meet(t.Context(), server{engine{url: "redis://%s"}, "X=" + program}, "/bin/false", time.Second)
		if err == nil && r.ok() {
			t.Errorf("%s: %+v", program, r)
		}
	}
}

// A run of verify that has proved nothing runs again, a few times.
func TestVerifyAgain(t *testing.T) {
	for proves, want := range map[int]bool{1: true, tries: true, tries + 1: false} {
		verifier, runs := filepath.Join(t.TempDir(), "verify"), filepath.Join(t.TempDir(), "runs")
		script := fmt.Sprintf("#!/bin/sh\necho >>%s\n[ $(wc -l <%[1]s) -ge %d ] || { echo '{\"Grants\": 1, \"invalid\": \"too few\"}'; exit 1; }\necho '{\"Grants\": 100}'\n", runs, proves)
		if err := os.WriteFile(verifier, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		var r row
		if err := r.verify(t.Context(), server{engine: engine{start: "redis"}}, verifier, time.Second); err != nil || r.ok() != want {
			t.Errorf("run %d proves something: %+v, %v", proves, r, err)
		}
	}
}

// Only the store's own refusal counts as one.
func TestJudge(t *testing.T) {
	for complaint, want := range map[string]bool{
		"holdfast-verify: " + driver.ErrInvalid.Error() + ": two connections do not exclude": true,
		"holdfast-verify: dial tcp: connection refused":                                      false,
		"": false,
	} {
		verifier := filepath.Join(t.TempDir(), "verify")
		if err := os.WriteFile(verifier, []byte("#!/bin/sh\necho '"+complaint+"' >&2\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var r row
		if err := r.judge(t.Context(), "redis://unused", verifier, time.Second); err != nil || r.ok() != want {
			t.Errorf("%q: %+v, %v, want a success: %t", complaint, r, err, want)
		}
	}
}

// functions returns the tests of a package, without "Test".
func functions(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("tests of %s: %q, %v", dir, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func Test(\w+)\(t `).FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// Each name in an engine's expression is the name of a test.
func TestSuites(t *testing.T) {
	for _, e := range engines {
		for _, s := range e.tests {
			names := functions(t, s.dir)
			list := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(s.run, "^Test"), "$"), "()")
			for part := range strings.SplitSeq(list, "|") {
				one := regexp.MustCompile("^(" + part + ")$")
				if !slices.ContainsFunc(names, one.MatchString) {
					t.Errorf("%s has no test %s", s.dir, part)
				}
			}
		}
	}
}

// The tests of rights, TLS and passwords that docs/rights.md names run on every server.
func TestRightsRunOnEveryServer(t *testing.T) {
	text, err := os.ReadFile("../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, match := range regexp.MustCompile("`(\\w+)\\.(Test\\w+)`").FindAllStringSubmatch(string(text), -1) {
		for _, e := range engines {
			for _, s := range e.tests {
				if s.dir != match[1] || e.name == "pgbouncer" {
					continue
				}
				checked++
				if !regexp.MustCompile(s.run).MatchString(match[2]) {
					t.Errorf("docs/rights.md names %s.%s, which does not run on the servers of %s", match[1], match[2], e.name)
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("%d tests were found in docs/rights.md", checked)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-for=x"}, {"-only=redis", "-save=x"}, {"-only=oracle"}} {
		if err := execute(t.Context(), args, t.Output()); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
