package browser

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
)

// compiled holds the programs of the examples: the virtual devices and the brokers.
var compiled = sync.OnceValues(func() (akri.Programs, error) {
	root, err := build.Root()
	if err != nil {
		return akri.Programs{}, err
	}
	programs := akri.Programs{Root: root, Dir: filepath.Join(root, "bin")}
	return programs, akri.CompileExamples(context.Background(), programs, os.Stderr)
})

// process is a running program of the examples.
type process struct {
	t       testing.TB
	command *exec.Cmd
	address string // HOST:PORT, as its log has it
	exited  chan struct{}
}

// start runs a program of the examples until it is stopped or the test ends, and returns
// when it serves.
func start(t testing.TB, environment []string, program string, arguments ...string) *process {
	t.Helper()
	programs, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, command: exec.Command(filepath.Join(programs.Dir, "examples", program), arguments...), exited: make(chan struct{})}
	p.command.Env = environment
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // if the test is killed
	log, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	addresses := make(chan string, 1)
	go p.read(log, addresses)
	t.Cleanup(p.stop)
	select {
	case p.address = <-addresses:
	case <-p.exited:
		t.Fatalf("%s ended: %v", program, p.command.ProcessState)
	}
	return p
}

// logged matches the address in the first message of a program.
var logged = regexp.MustCompile(`(?:address=|url=http://)(\d+\.\d+\.\d+\.\d+:\d+)`)

// read passes the address in a program's log on, and waits for the program's end.
func (p *process) read(log io.Reader, addresses chan<- string) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if match := logged.FindStringSubmatch(lines.Text()); match != nil {
			select {
			case addresses <- match[1]:
			default:
			}
		}
	}
	_ = p.command.Wait() // the state is in the command
	close(p.exited)
}

// terminate tells the program to end, as the kubelet does.
func (p *process) terminate() { p.t.Helper(); p.signal(syscall.SIGTERM) }

// signal sends a signal to the program.
func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// stop ends the program, and waits until it has ended.
func (p *process) stop() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.exited
}
