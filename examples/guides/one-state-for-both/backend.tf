terraform {
  backend "http" {}
}
