package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/otellock"
)

// The files for operators: alerts, their tests, a dashboard, and the pages about them.
const (
	rules     = "../../deploy/prometheus/holdfast.rules.yml"
	rulesTest = "../../deploy/prometheus/holdfast.rules.test.yml"
	dashboard = "../../deploy/grafana/holdfast.json"
	runbook   = "../../docs/runbook.md"
	telemetry = "../../docs/telemetry.md"
)

// exported returns the metrics that otellock exports to Prometheus, and the names that
// queries may use: of these metrics, their parts and their labels. A counter appears
// with its first event, so every event happens here.
func exported(t *testing.T) (metrics []string, known map[string]bool) {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	trace, err := otellock.New(&otellock.Options{
		Meters: metric.NewMeterProvider(metric.WithReader(reader)),
		Name:   otellock.KeyPrefix("/"),
	})
	if err != nil {
		t.Fatal(err)
	}
	event := func(err error) holdfast.Event {
		return holdfast.Event{Context: context.Background(), Key: "account/42", Err: err}
	}
	away := errors.New("the store is away")
	trace.Wanted(event(nil))
	trace.Tried(event(away))
	trace.Locked(event(nil))
	trace.Renewed(event(nil))
	trace.AtRisk(event(nil))
	trace.Lost(event(&holdfast.LostError{Reason: holdfast.LossExpired}))
	trace.GaveUp(event(away))
	trace.Unlocked(event(away))

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known = make(map[string]bool)
	for _, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "holdfast_") {
			continue // of the exporter itself
		}
		metrics, known[name] = append(metrics, name), true
		for _, m := range family.GetMetric() {
			if m.GetHistogram() != nil {
				known[name+"_bucket"], known[name+"_count"], known[name+"_sum"] = true, true, true
			}
			for _, label := range m.GetLabel() {
				known[label.GetName()] = true
			}
		}
	}
	return metrics, known
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every metric and label that operators are shown is one that otellock exports, and
// every metric that otellock exports is on the dashboard and in docs/telemetry.md.
func TestNamesAreExported(t *testing.T) {
	metrics, known := exported(t)
	name := regexp.MustCompile(`\bholdfast_\w+`)
	for _, file := range []string{rules, rulesTest, dashboard, runbook, telemetry} {
		for _, got := range name.FindAllString(read(t, file), -1) {
			if !known[got] {
				t.Errorf("%s: otellock exports no %s", file, got)
			}
		}
	}
	for _, metric := range metrics {
		for _, file := range []string{dashboard, telemetry} {
			if !strings.Contains(read(t, file), metric) {
				t.Errorf("%s does not show %s", file, metric)
			}
		}
	}
}

// promtool runs promtool and fails the test if promtool does.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(servers.Installed(t, "prometheus", "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestRules runs the tests of the alerts, which Prometheus evaluates.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", rules)
	promtool(t, "test", "rules", rulesTest)
}

// Every alert has a test, and a section of the runbook to which it links.
func TestAlertsAreExplained(t *testing.T) {
	text, tests, book := read(t, rules), read(t, rulesTest), read(t, runbook)
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(text, -1)
	if len(alerts) == 0 {
		t.Fatal("found no alerts")
	}
	sections := make(map[string]bool)
	for _, match := range regexp.MustCompile(`(?m)^## (Holdfast\w+)$`).FindAllStringSubmatch(book, -1) {
		sections[match[1]] = true
	}
	for _, match := range alerts {
		alert := match[1]
		if !sections[alert] {
			t.Errorf("docs/runbook.md has no section %s", alert)
		}
		delete(sections, alert)
		link := "docs/runbook.md#" + strings.ToLower(alert) + "\n"
		if strings.Count(text, link) != 1 {
			t.Errorf("%s: want one link to %s", rules, link)
		}
		if fires := regexp.MustCompile(`alertname: ` + alert + `\n\s+exp_alerts:`); !fires.MatchString(tests) {
			t.Errorf("%s: no case in which %s fires", rulesTest, alert)
		}
		if silent := regexp.MustCompile(`alertname: ` + alert + `\n(\s+- eval_time|\n|$)`); !silent.MatchString(tests) {
			t.Errorf("%s: no case in which %s is silent", rulesTest, alert)
		}
	}
	for _, reason := range []holdfast.LossReason{holdfast.LossExpired, holdfast.LossUnreachable, holdfast.LossTaken, holdfast.LossBroken, holdfast.LossMaxHold, holdfast.LossStalled, holdfast.LossDropped} {
		if !strings.Contains(book, "\n| `"+string(reason)+"` |") {
			t.Errorf("docs/runbook.md does not explain the loss reason %q", reason)
		}
	}
	for section := range sections {
		t.Errorf("docs/runbook.md explains %s, which is no alert", section)
	}
}

// A panel is as much of one as these tests look at.
type panel struct {
	ID          int
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr string }
}

// TestDashboard lets Prometheus parse every query of the dashboard, and looks for panels
// that lie on top of each other.
func TestDashboard(t *testing.T) {
	var board struct {
		UID    string
		Panels []panel
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || len(board.Panels) == 0 {
		t.Fatal("the dashboard has no uid, or no panels")
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", ".*", "$name", ".*")
	recorded := "groups:\n- name: dashboard\n  rules:\n"
	ids, cells := make(map[int]bool), make(map[[2]int]string)
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q: want an id of its own, a title, a description, and a query", p.ID, p.Title)
		}
		ids[p.ID] = true
		at := p.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("panel %q lies on %q, or outside", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		for i, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q: unknown variable in %s", p.Title, target.Expr)
			}
			recorded += fmt.Sprintf("  - record: panel_%d_%d\n    expr: %q\n", p.ID, i, expr)
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, []byte(recorded), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
