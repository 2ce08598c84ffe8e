package offline

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"akri.sh/akri/cmd/kubectl-akri/cli"
)

// initial has the manifests to start from, with variables such as $NAME.
//
//go:embed initial
var initial embed.FS

// starts are the kinds of devices that have a manifest.
var starts = []string{"ip-camera", "mqtt", "opcua", "serial", "stick", "usb-camera"}

// usbIDs matches what lsusb prints, in lower case.
var usbIDs = regexp.MustCompile(`^([0-9a-f]{4}):([0-9a-f]{4})$`)

func newInit(streams cli.Streams) *cobra.Command {
	var name, usb, host string
	command := &cobra.Command{
		Use:   "init (" + strings.Join(starts, " | ") + ")",
		Short: "Print a Configuration and a Deployment to start from",
		Long: `Print a Configuration that finds a kind of device, with a Deployment for each device that
is found, and comments about what is usually changed. The Deployment of a stick is a
separate object: it uses the stick, whichever node the stick is plugged into.`,
		Example: `  lsusb  # prints 10c4:ea60 for the stick
  kubectl akri init stick --usb 10c4:ea60 --name zigbee > zigbee.yaml
  kubectl akri discover -f zigbee.yaml  # what does it find?`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: starts,
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		rule, plain := `SUBSYSTEMS=="usb"`, Initial(args[0])
		ids := usbIDs.FindStringSubmatch(strings.ToLower(usb))
		switch {
		case usb != "" && !strings.Contains(plain, "$USB"), host != "" && !strings.Contains(plain, "$HOST"):
			return cli.Usage(command, errors.New("--usb is for stick, serial and usb-camera, and --host for opcua and mqtt"))
		case usb != "" && ids == nil:
			return cli.Usage(command, fmt.Errorf("--usb %q: use VENDOR:PRODUCT as lsusb prints them, as in 10c4:ea60", usb))
		case name != "" && len(validation.IsDNS1123Label(name)) > 0:
			return cli.Usage(command, fmt.Errorf("--name %q: use lower-case letters, digits and hyphens, as in zigbee", name))
		case strings.ContainsAny(host, ":/ "):
			return cli.Usage(command, fmt.Errorf("--host %q: use a name or an address without a port, as in 192.0.2.51", host))
		case usb != "":
			rule = fmt.Sprintf(`ATTRS{idVendor}=="%s", ATTRS{idProduct}=="%s"`, ids[1], ids[2])
		}
		text := Initial(args[0], "$NAME", cmp.Or(name, args[0]), "$USB", rule, "$HOST", cmp.Or(host, "192.0.2.51"))
		_, err := io.WriteString(cli.Exact(streams.Out), text)
		return err
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "`name` of the Configuration (default: the kind of device)")
	flags.StringVar(&usb, "usb", "", "only USB devices with these IDs, as `VENDOR:PRODUCT`")
	flags.StringVar(&host, "host", "", "`host` of the OPC UA server or of the MQTT broker")
	return command
}

// Initial returns one of the manifests to start from, with variables replaced.
func Initial(manifest string, oldNew ...string) string {
	text, _ := initial.ReadFile("initial/" + manifest + ".yaml") // they are part of the program
	if manifest != "stick" && manifest != "found" {
		deployment, _ := initial.ReadFile("initial/deployment.yaml")
		text = append(text, deployment...)
	}
	return strings.NewReplacer(oldNew...).Replace(string(text))
}
