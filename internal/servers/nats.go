package servers

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A NATS is a NATS server with JetStream: a single server, or a member of a [NATSCluster].
type NATS struct {
	*Process
	Clients *Proxy        // in front of the server, for clients that use Addr
	TLS     *Certificates // of a server that speaks TLS only, otherwise nil

	name  string
	file  string   // the configuration
	fixed []string // its lines but the options
	peers *Proxy   // the address for other members
	port  int      // for clients, behind the proxy
	bus   int      // for members, behind the proxy
	http  int
}

// natsVersion is the release that scripts/servers installs: that of Debian has no TTL of a
// message.
const natsVersion = "v2.12.3"

// StartNATS starts a single server. Options are lines of the configuration. The server waits
// for the disk before it acknowledges a message.
func StartNATS(tb TB, options ...string) *NATS {
	tb.Helper()
	n := prepareNATS(tb)
	n.start(tb, "", options)
	return n
}

// StartNATSTLS is StartNATS for a server that speaks TLS only. Lines are more lines of its tls
// block: with "verify: true" the server wants a certificate of each client.
func StartNATSTLS(tb TB, lines ...string) *NATS {
	tb.Helper()
	n := prepareNATS(tb)
	n.TLS = newCertificates(tb)
	block := append([]string{
		"timeout: 60", // A busy machine may not run a client for seconds.
		fmt.Sprintf("cert_file: %q", n.TLS.Cert), fmt.Sprintf("key_file: %q", n.TLS.Key), fmt.Sprintf("ca_file: %q", n.TLS.CA),
	}, lines...)
	n.start(tb, "", []string{"tls { " + strings.Join(block, ", ") + " }"})
	return n
}

// prepareNATS gives a server a name and addresses.
func prepareNATS(tb TB) *NATS {
	tb.Helper()
	nowhere := address(1)
	return &NATS{name: strings.ToLower(rand.Text()), Clients: StartProxy(tb, nowhere), peers: StartProxy(tb, nowhere)}
}

func (n *NATS) start(tb TB, routes string, options []string) {
	tb.Helper()
	n.Process = start(tb, program{
		name: "nats-server",
		path: chosen(tb, "HOLDFAST_NATS", "of go install github.com/nats-io/nats-server/v2@"+natsVersion, "nats-server"),
		setup: func(tb TB, dir string) ([]string, error) {
			return n.configure(tb, dir, routes, options)
		},
		ready: func(int) error { return n.ready() },
	})
}

// configure picks the ports, writes the configuration and returns the arguments.
func (n *NATS) configure(tb TB, dir, routes string, options []string) ([]string, error) {
	n.port, n.bus, n.http = reserve(tb), reserve(tb), reserve(tb)
	n.Clients.Redirect(address(n.port))
	n.peers.Redirect(address(n.bus))
	n.file = filepath.Join(dir, "nats.conf")
	n.fixed = []string{
		"server_name: " + strconv.Quote(n.name),
		"listen: " + address(n.port),
		"http: " + address(n.http),
		fmt.Sprintf("jetstream { store_dir: %q, sync_interval: always }", filepath.Join(dir, "data")),
	}
	if routes != "" {
		// Clients must not learn the addresses behind the proxies.
		n.fixed = append(n.fixed, fmt.Sprintf("cluster { name: holdfast, listen: %q, routes: [%s], no_advertise: true, pool_size: -1 }", address(n.bus), routes))
	}
	return []string{"--config", n.file}, n.write(options)
}

// write writes the configuration with options.
func (n *NATS) write(options []string) error {
	return os.WriteFile(n.file, []byte(strings.Join(slices.Concat(n.fixed, options), "\n")+"\n"), 0o600)
}

// Reload replaces the options of StartNATS while the server runs, and returns when the new options
// hold.
func (n *NATS) Reload(options ...string) {
	n.tb.Helper()
	loaded := func() (string, error) {
		var status struct {
			Loaded string `json:"config_load_time"`
		}
		err := n.fetch("/varz", &status)
		return status.Loaded, err
	}
	before := awaited(n.tb, "the configuration of "+n.Addr(), loaded)
	if err := n.write(options); err != nil {
		n.tb.Fatalf("%v", err)
	}
	n.act("reload", func() error { return n.cmd.Process.Signal(syscall.SIGHUP) })
	Await(n.tb, "the new configuration of "+n.Addr(), func() error {
		now, err := loaded()
		if err == nil && now == before {
			err = errors.New("the server has the old one")
		}
		return err
	})
}

// ready returns nil once the server serves its streams.
func (n *NATS) ready() error {
	var status struct {
		Name string `json:"server_name"`
	}
	if err := n.fetch("/varz", &status); err != nil {
		return err
	}
	if status.Name != n.name {
		return errors.New("another server answers at its port")
	}
	return n.fetch("/healthz?js-server-only=true", nil)
}

// fetch reads a page of the monitoring.
func (n *NATS) fetch(path string, into any) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: glance}
	response, err := client.Get("http://" + address(n.http) + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<24))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", path, response.Status, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// Addr returns the host and port for clients, which lead to the proxy.
func (n *NATS) Addr() string { return n.Clients.Addr() }

// Direct returns the host and port without the proxy, for clients that the proxy must not
// disturb.
func (n *NATS) Direct() string { return address(n.port) }

// URL returns the address as nats://host:port, or natss://host:port with TLS.
func (n *NATS) URL() string {
	if n.TLS != nil {
		return "natss://" + n.Addr()
	}
	return "nats://" + n.Addr()
}

// CutOff holds back, while on, all data in connections that clients and other members have
// opened to the server, in both directions.
func (n *NATS) CutOff(on bool) {
	n.Clients.Blackhole(on)
	n.peers.Blackhole(on)
}

// Messages returns the number of messages in all streams of the server.
func (n *NATS) Messages() int {
	n.tb.Helper()
	return awaited(n.tb, "the streams of "+n.Addr(), func() (int, error) {
		var status struct{ Messages int }
		err := n.fetch("/jsz", &status)
		return status.Messages, err
	})
}

// Received returns the number of messages that clients have sent to the server.
func (n *NATS) Received() int {
	n.tb.Helper()
	return awaited(n.tb, "the messages of "+n.Addr(), func() (int, error) {
		var status struct {
			Messages int `json:"in_msgs"`
		}
		err := n.fetch("/varz", &status)
		return status.Messages, err
	})
}

// AwaitCurrent returns when the server has caught up with the other members.
func (n *NATS) AwaitCurrent() {
	n.tb.Helper()
	Await(n.tb, "the server "+n.Addr()+" to catch up", func() error { return n.fetch("/healthz", nil) })
}

// Version returns the name and the version of the server.
func (n *NATS) Version() string {
	n.tb.Helper()
	return "NATS " + awaited(n.tb, "the version of "+n.Addr(), func() (string, error) {
		var status struct{ Version string }
		err := n.fetch("/varz", &status)
		return status.Version, err
	})
}

// followed returns nil if the other members follow the server, which leads them.
func (n *NATS) followed() error {
	var status struct {
		Cluster struct {
			Replicas []struct {
				Name    string
				Current bool
				Offline bool
			}
		} `json:"meta_cluster"`
	}
	if err := n.fetch("/jsz", &status); err != nil {
		return err
	}
	if len(status.Cluster.Replicas) < 2 {
		return errors.New("it leads nobody")
	}
	for _, member := range status.Cluster.Replicas {
		if !member.Current || member.Offline {
			return fmt.Errorf("member %s is not current", member.Name)
		}
	}
	return nil
}

// A NATSCluster is a NATS cluster of three members.
type NATSCluster struct {
	Nodes []*NATS
	tb    TB
}

// StartNATSCluster starts three members, with the options of StartNATS, and returns when they
// have a leader that can place streams on all of them.
func StartNATSCluster(tb TB, options ...string) *NATSCluster {
	tb.Helper()
	c := &NATSCluster{tb: tb}
	var routes []string
	for range 3 {
		n := prepareNATS(tb)
		c.Nodes = append(c.Nodes, n)
		routes = append(routes, strconv.Quote("nats://"+n.peers.Addr()))
	}
	for _, n := range c.Nodes {
		n.start(tb, strings.Join(routes, ", "), options)
	}
	Await(tb, "a leader that two members follow", func() error { return c.Leader().followed() })
	return c
}

// URL returns the addresses of all members as nats://host:port,host:port,...
func (c *NATSCluster) URL() string { return "nats://" + strings.Join(addrs(c.Nodes), ",") }

// Leader returns the member that leads the cluster, which need not lead every stream.
func (c *NATSCluster) Leader() *NATS {
	c.tb.Helper()
	return awaited(c.tb, "a leader", func() (*NATS, error) {
		var failed error
		for _, n := range c.Nodes {
			var status struct {
				Cluster struct {
					Leader  string `json:"leader"`
					Members int    `json:"cluster_size"`
				} `json:"meta_cluster"`
			}
			if err := n.fetch("/jsz", &status); err != nil {
				failed = cmp.Or(failed, err)
			} else if status.Cluster.Leader == n.name && status.Cluster.Members == len(c.Nodes) {
				return n, nil
			}
		}
		return nil, cmp.Or(failed, errors.New("no member leads"))
	})
}
