package servers

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An Etcd is an etcd server: a single server, or a member of an [EtcdCluster].
type Etcd struct {
	*Process
	TLS *Certificates // nil if the server speaks plain text to clients

	// Clients is a proxy in front of the server, for clients that use Addr.
	Clients *Proxy

	name  string
	peers *Proxy // the address for other members
	port  int    // for clients, behind the proxy
	bus   int    // for members, behind the proxy
}

// StartEtcd starts a single server. Options are extra arguments, such as
// "--auth-token-ttl=1". The server keeps its data on disk, and waits for the disk.
func StartEtcd(tb TB, options ...string) *Etcd {
	tb.Helper()
	return prepareEtcd(tb).alone(tb, options)
}

// StartEtcdTLS is StartEtcd for a server that speaks TLS only. The server asks clients for
// no certificate, unless the option "--client-cert-auth" is given.
func StartEtcdTLS(tb TB, options ...string) *Etcd {
	tb.Helper()
	e := prepareEtcd(tb)
	e.TLS = newCertificates(tb)
	return e.alone(tb, append(slices.Clone(options),
		"--cert-file="+e.TLS.Cert, "--key-file="+e.TLS.Key, "--trusted-ca-file="+e.TLS.CA))
}

// prepareEtcd gives a server a name and addresses.
func prepareEtcd(tb TB) *Etcd {
	tb.Helper()
	nowhere := address(1)
	return &Etcd{name: strings.ToLower(rand.Text()), Clients: StartProxy(tb, nowhere), peers: StartProxy(tb, nowhere)}
}

// alone starts a single server, and returns when the server leads.
func (e *Etcd) alone(tb TB, options []string) *Etcd {
	tb.Helper()
	e.start(tb, e.name+"="+e.peerURL(), options)
	e.awaitLeader()
	return e
}

func (e *Etcd) start(tb TB, members string, options []string) {
	tb.Helper()
	e.Process = start(tb, program{
		name: "etcd",
		path: chosen(tb, "HOLDFAST_ETCD", "etcd-server", "etcd"),
		setup: func(tb TB, dir string) ([]string, error) {
			return e.configure(tb, dir, members, options), nil
		},
		ready: func(int) error { return e.ready() },
	})
}

// configure picks the ports and returns the arguments.
func (e *Etcd) configure(tb TB, dir, members string, options []string) []string {
	e.port, e.bus = reserve(tb), reserve(tb)
	e.Clients.Redirect(address(e.port))
	e.peers.Redirect(address(e.bus))
	return slices.Concat([]string{
		"--name=" + e.name,
		"--data-dir=" + filepath.Join(dir, "data"),
		"--listen-client-urls=" + e.scheme() + address(e.port),
		"--advertise-client-urls=" + e.scheme() + e.Clients.Addr(),
		"--listen-peer-urls=http://" + address(e.bus),
		"--initial-advertise-peer-urls=" + e.peerURL(),
		"--initial-cluster=" + members,
		"--logger=zap",
		"--log-level=warn",
	}, options)
}

func (e *Etcd) scheme() string {
	if e.TLS != nil {
		return "https://"
	}
	return "http://"
}

func (e *Etcd) peerURL() string { return "http://" + e.peers.Addr() }

// ready returns nil once the server at the port of e answers with the address of e. The
// server serves clients only while a majority of members runs.
func (e *Etcd) ready() error {
	text, err := e.fetch(http.MethodGet, "http://"+address(e.bus)+"/members", "")
	if err == nil && !bytes.Contains(text, []byte(e.peerURL())) {
		err = errors.New("another server answers at its port")
	}
	return err
}

// Addr returns the host and port for clients, which lead to the proxy.
func (e *Etcd) Addr() string { return e.Clients.Addr() }

// Direct returns the host and port without the proxy, for clients that the proxy must not
// disturb.
func (e *Etcd) Direct() string { return address(e.port) }

// URL returns the address as etcd://host:port, or etcds:// with TLS.
func (e *Etcd) URL() string {
	if e.TLS != nil {
		return "etcds://" + e.Addr()
	}
	return "etcd://" + e.Addr()
}

// CutOff holds back, while on, all data in connections that clients and other members have
// opened to the server, in both directions. The network is thus cut in one direction: in
// connections that the server has opened, the server still hears other members.
func (e *Etcd) CutOff(on bool) {
	e.Clients.Blackhole(on)
	e.peers.Blackhole(on)
}

// Revision returns how many writes etcd has carried out since its data began.
func (e *Etcd) Revision() int {
	e.tb.Helper()
	n, err := strconv.Atoi(e.mustStatus().Header.Revision)
	if err != nil {
		e.tb.Fatalf("%s: %v", e.Addr(), err)
	}
	return n
}

// Metric returns a number from the metrics of the server.
func (e *Etcd) Metric(name string) float64 {
	e.tb.Helper()
	text := awaited(e.tb, "the metrics of "+e.Addr(), func() ([]byte, error) {
		return e.fetch(http.MethodGet, e.scheme()+e.Direct()+"/metrics", "")
	})
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				e.tb.Fatalf("%s: %v", e.Addr(), err)
			}
			return n
		}
	}
	e.tb.Fatalf("%s: there is no metric %s", e.Addr(), name)
	return 0
}

// awaitLeader returns when the server follows a leader, or leads.
func (e *Etcd) awaitLeader() {
	e.tb.Helper()
	awaited(e.tb, "etcd", e.leader)
}

// leader returns the id of the leader, if this server is a member that follows a leader.
func (e *Etcd) leader() (id string, err error) {
	status, err := e.status()
	if err == nil && cmp.Or(status.Leader, "0") == "0" {
		err = errors.New("etcd has no leader")
	}
	return status.Leader, err
}

type etcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
		Revision string `json:"revision"`
	} `json:"header"`
	Leader string `json:"leader"`
}

func (e *Etcd) status() (s etcdStatus, err error) {
	text, err := e.fetch(http.MethodPost, e.scheme()+address(e.port)+"/v3/maintenance/status", "{}")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// mustStatus retries until etcd answers.
func (e *Etcd) mustStatus() etcdStatus {
	e.tb.Helper()
	return awaited(e.tb, "the status of "+e.Addr(), e.status)
}

func (e *Etcd) fetch(method, url, body string) (text []byte, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if e.TLS != nil {
		transport.TLSClientConfig = e.TLS.client
	}
	client := &http.Client{Transport: transport, Timeout: glance}
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 1<<24))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, bytes.TrimSpace(text))
	}
	return text, err
}
