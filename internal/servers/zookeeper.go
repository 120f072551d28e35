package servers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ZooKeeperTick is the tickTime of the servers. A session lasts from two ticks to a
// minute.
const ZooKeeperTick = 250 * time.Millisecond

// A ZooKeeper is a ZooKeeper server.
type ZooKeeper struct {
	*Process
	TLS *Certificates // nil if the server speaks plain text only

	id     int // in an ensemble; 0 for a single server
	home   string
	port   int
	secure int // port for TLS
}

// StartZooKeeper starts a single server. Options are extra lines of the configuration,
// such as "forceSync=no"; options that begin with -D are for the Java machine. Empty
// container nodes are removed after half a second.
func StartZooKeeper(tb TB, options ...string) *ZooKeeper {
	tb.Helper()
	return new(ZooKeeper).start(tb, options)
}

// StartZooKeeperTLS starts a server that also speaks TLS, with clients that present a
// certificate.
func StartZooKeeperTLS(tb TB, options ...string) *ZooKeeper {
	tb.Helper()
	z := &ZooKeeper{TLS: newCertificates(tb)}
	return z.start(tb, options)
}

// encrypted picks a port for TLS and returns the lines of the configuration.
func (z *ZooKeeper) encrypted(tb TB, dir string) (lines []string, err error) {
	if z.TLS == nil {
		return nil, nil
	}
	z.secure = reserve(tb)
	var both []byte // Java expects both in one file
	for _, file := range []string{z.TLS.Key, z.TLS.Cert} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		both = append(both, text...)
	}
	identity := filepath.Join(dir, "identity.pem")
	return []string{
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"secureClientPortAddress=" + loopback,
		"secureClientPort=" + strconv.Itoa(z.secure),
		"ssl.keyStore.location=" + identity,
		"ssl.trustStore.location=" + z.TLS.CA,
		"ssl.clientHostnameVerification=false",
	}, os.WriteFile(identity, both, 0o600)
}

// SecureAddr returns the host and port for TLS.
func (z *ZooKeeper) SecureAddr() string { return address(z.secure) }

// jars returns the folder of ZooKeeper's Java libraries: $HOLDFAST_ZOOKEEPER, else the
// folder of Debian.
func jars() string { return cmp.Or(os.Getenv("HOLDFAST_ZOOKEEPER"), "/usr/share/java") }

// classes returns the class path of a server.
func classes() string {
	var paths []string
	// A jar of Debian names other jars by their path in Debian, so jute comes first.
	for _, name := range []string{"zookeeper-jute.jar", "zookeeper.jar", "slf4j-simple.jar", "netty-codec.jar"} {
		paths = append(paths, filepath.Join(jars(), name))
	}
	return strings.Join(paths, string(filepath.ListSeparator))
}

func (z *ZooKeeper) start(tb TB, options []string) *ZooKeeper {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(jars(), "zookeeper.jar")); err != nil {
		missing(tb, "ZooKeeper", "libzookeeper-java")
	}
	z.Process = start(tb, program{
		name:  "zookeeper",
		path:  Installed(tb, "default-jre-headless", "java"),
		setup: func(tb TB, dir string) ([]string, error) { return z.configure(tb, dir, options) },
		ready: func(int) error { return z.ready() },
	})
	return z
}

// configure picks a port, writes the configuration and returns the arguments of Java that
// name the file.
func (z *ZooKeeper) configure(tb TB, dir string, options []string) (args []string, err error) {
	z.port, z.home = reserve(tb), dir
	file := filepath.Join(dir, "zoo.cfg")
	lines := []string{
		"tickTime=" + strconv.FormatInt(ZooKeeperTick.Milliseconds(), 10),
		"maxSessionTimeout=60000",
		"initLimit=16",
		"syncLimit=10",
		"dataDir=" + filepath.Join(dir, "data"),
		"clientPortAddress=" + loopback,
		"clientPort=" + strconv.Itoa(z.port),
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
	}
	args = []string{
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dznode.container.checkIntervalMs=500", "-Dznode.container.maxPerMinute=1000000",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", classes(),
	}
	encrypted, err := z.encrypted(tb, dir)
	if err != nil {
		return nil, err
	}
	for _, o := range append(encrypted, options...) {
		if strings.HasPrefix(o, "-D") {
			args = append(args, o)
		} else {
			lines = append(lines, o)
		}
	}
	args = append(args, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	if err := z.identify(filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	return args, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// identify writes the file with the server's number in the ensemble.
func (z *ZooKeeper) identify(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil || z.id == 0 {
		return err
	}
	return os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(z.id)), 0o600)
}

// ready returns nil once the server in this folder answers, and serves. A member of an
// ensemble need not serve yet.
func (z *ZooKeeper) ready() error {
	said, err := z.Do("envi")
	if err == nil && !strings.Contains(said, "user.dir="+z.home+"\n") {
		err = fmt.Errorf("another server answers at %s", z.Addr())
	}
	if err == nil && z.id == 0 && z.mode() == "" {
		err = errors.New("the server does not serve yet")
	}
	if err == nil && z.secure != 0 {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", z.SecureAddr(), glance); err == nil {
			err = conn.Close()
		}
	}
	return err
}

// Addr returns the host and port.
func (z *ZooKeeper) Addr() string { return address(z.port) }

// URL returns the address as zk://host:port.
func (z *ZooKeeper) URL() string { return "zk://" + z.Addr() }

// Do sends a command of four letters over a new connection and returns the answer.
func (z *ZooKeeper) Do(command string) (string, error) {
	conn, err := net.DialTimeout("tcp", z.Addr(), glance)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(glance)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command); err != nil {
		return "", err
	}
	said, err := io.ReadAll(conn)
	if err == nil && len(said) == 0 {
		err = errors.New("no answer")
	}
	return string(said), err
}

// Count returns a counter of the server, such as "znode_count", "ephemerals_count" or
// "watch_count".
func (z *ZooKeeper) Count(name string) int {
	z.tb.Helper()
	return awaited(z.tb, "the "+name+" of "+z.Addr(), func() (int, error) {
		said, err := z.Do("mntr")
		if err != nil {
			return 0, err
		}
		_, after, _ := strings.Cut(said, "zk_"+name+"\t")
		value, _, _ := strings.Cut(after, "\n")
		return strconv.Atoi(value)
	})
}

// mode returns leader, follower or standalone, or "" if the server does not serve.
func (z *ZooKeeper) mode() string {
	said, err := z.Do("srvr")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(said, "Mode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}
