package verify

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/page"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// samplePage is a page with something of everything, and with names that would break
// one that is put together carelessly.
func samplePage() *page.Page {
	p := &page.Page{
		Program: "holdfast verify",
		Title:   "redis <b>",
		Facts:   []page.Fact{{Name: "seed", Value: "7"}},
		Table:   [][]string{{"exclusion"}, {"1 BROKEN"}},
		Verdict: "promises were broken",
		Keys:    []string{"key0", "</script><script>document.title = 'wrong'</script>"},
		End:     1000,
		Faults: []page.Fault{
			{Nemesis: "pause", Worker: 1, From: 100, To: 400}, {Nemesis: "evict", Worker: -1, From: 500, To: 500},
		},
		Violations: []page.Violation{
			{Check: "exclusion", Key: 1, At: 300, Text: "both at once </script>"},
			{Check: "tidy", Key: -1, At: -1, Text: "something is left"},
			{Check: "told", Key: 0, At: 400, Text: "not promised", Waived: true},
		},
	}
	for i := range 50 {
		from := float64(20 * i)
		p.Holds = append(p.Holds, page.Hold{
			Key: i % 2, Worker: i % 4, Who: fmt.Sprintf("worker %d.1/1", i%4), Mode: "exclusive",
			Token: fmt.Sprint(1000 + i), Asked: from, From: from + 1, Until: from + 10, To: from + 15, End: "unlocked", Lost: i%7 == 0,
		})
	}
	return p
}

// colours says of which workers the colours are in the picture.
const colours = `<script>
  const picture = document.getElementById("timeline");
  const dots = picture.getContext("2d").getImageData(0, 0, picture.width, picture.height).data;
  const seen = [0, 0, 0, 0, 0];
  for (let i = 0; i < dots.length; i += 4) {
    const [r, g, b, a] = dots.subarray(i, i + 4), most = Math.max(r, g, b), range = most - Math.min(r, g, b);
    if (a < 200 || range < 60) continue;
    const hue = 60 * (most === r ? (g - b) / range : most === g ? 2 + (b - r) / range : 4 + (r - g) / range);
    const near = w => Math.abs((hue - (w * 137 + 210) + 3 * 360 + 180) % 360 - 180) < 10;
    seen.forEach((_, w) => { if (near(w)) seen[w]++; });
  }
  document.body.dataset.colours = seen.map((n, w) => n > 200 ? w : "none").join(" ");
</script>`

// texts says which texts Porcupine's view has, and which of its boxes are too small
// for theirs.
const texts = `<script>
  addEventListener("load", () => {
    const view = document.querySelector("iframe").contentDocument;
    const boxes = [...view.querySelectorAll(".history-rect")].map(box => box.getBBox());
    const fits = t => boxes.some(b => b.x < t.x && t.x + t.width < b.x + b.width && b.y < t.y && t.y < b.y + b.height);
    document.body.dataset.texts = [...view.querySelectorAll(".history-text")].map(text => {
      const t = text.getBBox();
      return text.textContent + (t.width > 0 && fits(t) ? "" : " (too small)");
    }).join(", ");
  });
</script>`

// view is Porcupine's view of a register that has accepted an old token.
func view(t *testing.T) string {
	var events []history.Event
	for i, e := range []history.Event{
		{Kind: history.Looks, Worker: 1, Token: 6}, {Kind: history.Looked, Worker: 1, Token: 6},
		{Kind: history.Writes, Worker: 2, Token: 5, Value: plan.Value(2, 1, 1, 7)}, {Kind: history.Wrote, Worker: 2, Token: 5},
	} {
		e.At, e.Life, e.Client, e.Key = int64(i+1), 1, 1, "key0"
		events = append(events, e)
	}
	for _, v := range check.Of(events).Fence(t.Context()) {
		if v.View != "" {
			return v.View
		}
	}
	t.Fatal("there is no view")
	return ""
}

// TestInABrowser opens the page in a real one, and looks at the picture: each worker's
// locks are in a colour of their own. Porcupine's view is drawn as well, though it is
// too far down to be seen at first.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	browser := servers.Installed(t, "chromium", "chromium", "google-chrome")
	p := samplePage()
	p.Views = []string{view(t)}
	for n := range 100 {
		p.Keys = append(p.Keys, fmt.Sprintf("more%d", n))
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(colours + texts); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(profile) }) // as far as no process of the browser still writes there
	cmd := exec.Command(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+profile, "--enable-logging=stderr", "--dump-dom", "file://"+file.Name())
	var complaints strings.Builder
	cmd.Stderr = &complaints
	late := time.AfterFunc(4*time.Minute, func() { cmd.Process.Kill() }) // a busy machine starts it within one
	defer late.Stop()
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	for _, want := range []string{
		`data-colours="0 1 2 3 none"`, "<title>holdfast verify: redis &lt;b&gt;</title>", "worker 3</span>",
		"exclusion, &lt;/script&gt;", "<li>tidy: something is left</li>", `<li class="waived">told, key0: not promised</li>`,
		`data-texts="000006 sees nothing, 000005 writes 2.1/1 #7"`,
	} {
		if !strings.Contains(string(dom), want) {
			t.Errorf("the browser does not show %q: %s", want, regexp.MustCompile(`<body[^>]*>`).FindString(string(dom)))
		}
	}
	if strings.Contains(complaints.String(), "Uncaught") {
		t.Errorf("the script fails: %s", complaints.String())
	}
}
