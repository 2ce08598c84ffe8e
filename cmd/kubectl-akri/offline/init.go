package offline

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
)

// initial has the manifests to start from. $NAME is the name of the Configuration.
//
//go:embed initial
var initial embed.FS

// starts are the kinds of devices that init knows. Each has the flag that says which of them is meant,
// and the text in its manifest that the value replaces.
var starts = map[string]struct{ flag, replaces string }{
	"stick":      {"usb", `SUBSYSTEMS=="usb"`},
	"serial":     {"usb", `SUBSYSTEMS=="usb"`},
	"usb-camera": {"usb", `SUBSYSTEMS=="usb"`},
	"ip-camera":  {},
	"opcua":      {"url", "opc.tcp://192.0.2.51:4840/"},
	"mqtt":       {"url", "tcp://mosquitto:1883"},
}

func newInit(streams cli.Streams) *cobra.Command {
	var name, usb, url string
	known := slices.Sorted(maps.Keys(starts))
	command := &cobra.Command{
		Use:   "init (" + strings.Join(known, " | ") + ")",
		Short: "Print a Configuration and a Deployment to start from",
		Long: `Print a Configuration that finds a kind of device, with a Deployment that uses it, and
comments about what is usually changed.

stick is for one USB stick that a Deployment uses on whichever node it is plugged in. For
the others, there is a Deployment for each device that is found.`,
		Example: `  lsusb  # prints 10c4:ea60 for the stick
  kubectl akri init stick --usb 10c4:ea60 --name zigbee > zigbee.yaml
  kubectl akri discover -f zigbee.yaml  # what does it find?
  kubectl apply -f zigbee.yaml`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: known,
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		kind := starts[args[0]]
		for _, flag := range []string{"usb", "url"} {
			if command.Flags().Changed(flag) && flag != kind.flag {
				return cli.Usage(command, fmt.Errorf("%s has no flag --%s", args[0], flag))
			}
		}
		value := cmp.Or(url, kind.replaces)
		if id := usbID.FindStringSubmatch(strings.ToLower(usb)); id != nil {
			value = fmt.Sprintf(`ATTRS{idVendor}=="%s", ATTRS{idProduct}=="%s"`, id[1], id[2])
		} else if usb != "" {
			return cli.Usage(command, fmt.Errorf("--usb %q: use VENDOR:PRODUCT as lsusb prints them, as in 10c4:ea60", usb))
		}
		_, err := cli.Exact(streams.Out).Write([]byte(Initial(args[0], cmp.Or(name, args[0]), kind.replaces, value)))
		return err
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "`name` of the Configuration (default: the kind of device)")
	flags.StringVar(&usb, "usb", "", "only USB devices with these ids, as `VENDOR:PRODUCT`")
	flags.StringVar(&url, "url", "", "`URL` of the OPC UA server or of the MQTT broker")
	return command
}

// usbID matches the numbers of a USB device as lsusb prints them.
var usbID = regexp.MustCompile(`^([0-9a-f]{4}):([0-9a-f]{4})$`)

// Initial returns one of the manifests to start from, with the name of the Configuration, and
// with one other text replaced.
func Initial(manifest, name, replaced, by string) string {
	text, err := initial.ReadFile("initial/" + manifest + ".yaml")
	if err != nil {
		panic(err) // they are part of the program
	}
	if _, known := starts[manifest]; known && manifest != "stick" {
		deployment, _ := initial.ReadFile("initial/deployment.yaml")
		text = append(text, deployment...)
	}
	return strings.NewReplacer("$NAME", name, replaced, by).Replace(string(text))
}
