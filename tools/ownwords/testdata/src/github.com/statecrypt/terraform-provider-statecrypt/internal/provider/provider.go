package provider

const place = "in the provider block"
