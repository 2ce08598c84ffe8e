package node

// cni gives each pod a cable to its node and an address of the node's range.
// Nothing is translated, so no firewall is needed.
func (c Config) cni() []byte {
	return render(object{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []object{{
			"type": "ptp",
			"mtu":  1500,
			"ipam": object{
				"type":    "host-local",
				"dataDir": "/run/cni",
				"ranges":  [][]object{{{"subnet": c.PodCIDR}}},
				"routes":  []object{{"dst": "0.0.0.0/0"}},
			},
		}},
	})
}
