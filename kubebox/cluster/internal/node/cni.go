package node

// cni renders the CNI configuration: each Pod gets a veth pair to its node and an
// address from the node's range. No address is translated, so no firewall is needed.
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
