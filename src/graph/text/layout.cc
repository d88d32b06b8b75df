// A layered drawing: longest paths give the layers, barycentres the order in a layer, and for x positions the
// least squares that keep that order.
#include "graph/text/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft {
namespace {

constexpr double kColumnGap = 24, kLayerGap = 36, kBendWidth = 10;
constexpr int kOrderSweeps = 8, kPlaceSweeps = 6;
// Bends of long edges, beyond which those are drawn straight across the layers.
constexpr size_t kBendsPerBox = 4, kFreeBends = 1000;

// A box, or a point where a long edge passes a layer.
struct Vertex {
  uint32_t source = 0;  // the box, or where the edge comes from
  bool is_bend = false;
  uint32_t layer = 0, position = 0;
  double x = 0;
  std::vector<uint32_t> above, below;
};

class Drawing {
 public:
  Drawing(std::span<const BoxSize> boxes, std::span<const std::vector<uint32_t>> inputs)
      : boxes_(boxes), inputs_(inputs) {}

  Layout2d run() {
    assign_layers();
    add_bends();
    order_layers();
    place_layers();
    return finished();
  }

 private:
  struct Edge {
    uint32_t from, to;
    uint32_t span;
  };

  double width_of(const Vertex& vertex) const {
    return vertex.is_bend ? kBendWidth : boxes_[vertex.source].width;
  }

  // --- layers ---

  void assign_layers() {
    const auto count = static_cast<uint32_t>(boxes_.size());
    std::vector<uint32_t> layer(count, 0), first_user(count, UINT32_MAX), users(count, 0);
    for (uint32_t i = 0; i < count; ++i)
      for (uint32_t input : inputs_[i])
        if (input < i) {
          layer[i] = std::max(layer[i], layer[input] + 1);
          ++users[input];
        }
    // Down to their users, where that makes no edge longer altogether: constants stand next to their use.
    for (uint32_t i = count; i-- > 0;) {
      if (users[i] > 0 && inputs_[i].size() <= users[i]) layer[i] = std::max(layer[i], first_user[i] - 1);
      for (uint32_t input : inputs_[i])
        if (input < i) first_user[input] = std::min(first_user[input], layer[i]);
    }
    number_layers(layer);
    vertices_.resize(count);
    for (uint32_t i = 0; i < count; ++i) add_to_layer(i, {.source = i, .layer = layer[i]});
  }

  // Without those that nothing is left in.
  void number_layers(std::vector<uint32_t>& layer) {
    if (layer.empty()) return;
    std::vector<uint32_t> number(1 + *std::max_element(layer.begin(), layer.end()), 0);
    for (uint32_t l : layer) number[l] = 1;
    uint32_t next = 0;
    for (uint32_t& n : number) n = n ? next++ : 0;
    for (uint32_t& l : layer) l = number[l];
    layers_.resize(next);
  }

  void add_to_layer(uint32_t index, Vertex vertex) {
    std::vector<uint32_t>& layer = layers_[vertex.layer];
    vertex.position = static_cast<uint32_t>(layer.size());
    layer.push_back(index);
    vertices_[index] = std::move(vertex);
  }

  // --- long edges ---

  void add_bends() {
    std::vector<Edge> edges;
    for (uint32_t to = 0; to < boxes_.size(); ++to)
      for (uint32_t from : inputs_[to]) {
        const uint32_t above = vertices_[from].layer, below = vertices_[to].layer;
        if (from < to && below > above) edges.push_back({from, to, below - above});
        else far_.push_back({from, to, 0});
      }
    // Short ones first: as many as possible get their bends. All edges of a box share them.
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& a, const Edge& b) { return a.span < b.span; });
    std::vector<std::vector<uint32_t>> bends(boxes_.size());
    size_t left = kFreeBends + kBendsPerBox * boxes_.size();
    for (const Edge& edge : edges) {
      std::vector<uint32_t>& chain = bends[edge.from];
      const size_t needed = edge.span - 1, missing = needed - std::min<size_t>(needed, chain.size());
      if (missing > left) {
        far_.push_back(edge);
        continue;
      }
      left -= missing;
      while (chain.size() < needed) chain.push_back(add_bend(edge.from, chain));
      connect(needed == 0 ? edge.from : chain[needed - 1], edge.to);
    }
  }

  uint32_t add_bend(uint32_t source, const std::vector<uint32_t>& chain) {
    const auto index = static_cast<uint32_t>(vertices_.size());
    const auto layer = static_cast<uint32_t>(vertices_[source].layer + chain.size() + 1);
    vertices_.emplace_back();
    add_to_layer(index, {.source = source, .is_bend = true, .layer = layer});
    connect(chain.empty() ? source : chain.back(), index);
    return index;
  }

  void connect(uint32_t above, uint32_t below) {
    vertices_[above].below.push_back(below);
    vertices_[below].above.push_back(above);
  }

  // --- the order in each layer ---

  void order_layers() {
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t i = 0; i < layers_.size(); ++i)
        order_layer(layers_[down ? i : layers_.size() - 1 - i], down);
    }
  }

  void order_layer(std::vector<uint32_t>& layer, bool by_above) {
    std::vector<std::pair<double, uint32_t>> keyed;
    keyed.reserve(layer.size());
    for (uint32_t index : layer) {
      const Vertex& vertex = vertices_[index];
      const std::vector<uint32_t>& others = by_above ? vertex.above : vertex.below;
      double sum = 0;
      for (uint32_t other : others) sum += relative_position(other);
      const double key = others.empty() ? relative_position(index) : sum / static_cast<double>(others.size());
      keyed.emplace_back(key, index);
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < keyed.size(); ++i) {
      layer[i] = keyed[i].second;
      vertices_[layer[i]].position = static_cast<uint32_t>(i);
    }
  }

  // From 0 to 1, so that layers of different lengths compare.
  double relative_position(uint32_t index) const {
    const Vertex& vertex = vertices_[index];
    return (vertex.position + 0.5) / static_cast<double>(layers_[vertex.layer].size());
  }

  // --- x coordinates ---

  void place_layers() {
    for (const std::vector<uint32_t>& layer : layers_) {
      double x = 0;
      for (uint32_t index : layer) {
        Vertex& vertex = vertices_[index];
        vertex.x = x + width_of(vertex) / 2;
        x += width_of(vertex) + kColumnGap;
      }
      for (uint32_t index : layer) vertices_[index].x -= (x - kColumnGap) / 2;
    }
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool down = sweep % 2 == 0, both = sweep + 2 >= kPlaceSweeps;
      for (size_t i = 0; i < layers_.size(); ++i)
        place_layer(layers_[down ? i : layers_.size() - 1 - i], down || both, !down || both);
    }
  }

  // Neighbours in a layer that would overlap move together: the block is as near as possible to where its
  // members want to be.
  struct Block {
    double weighted = 0, weight = 0;
    size_t count = 0;
    double x() const { return weighted / weight; }
  };

  void place_layer(const std::vector<uint32_t>& layer, bool by_above, bool by_below) {
    std::vector<Block> blocks;
    std::vector<double> offsets;
    double offset = 0;
    for (size_t i = 0; i < layer.size(); ++i) {
      const Vertex& vertex = vertices_[layer[i]];
      if (i > 0) offset += (width_of(vertices_[layer[i - 1]]) + width_of(vertex)) / 2 + kColumnGap;
      offsets.push_back(offset);
      const auto [wanted, weight] = wanted_x(vertex, by_above, by_below);
      blocks.push_back({(wanted - offset) * weight, weight, 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].x() > blocks.back().x()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back().weighted += last.weighted;
        blocks.back().weight += last.weight;
        blocks.back().count += last.count;
      }
    }
    size_t i = 0;
    for (const Block& block : blocks)
      for (size_t k = 0; k < block.count; ++k, ++i) vertices_[layer[i]].x = block.x() + offsets[i];
  }

  // Near to its neighbours, of which those count most that are on the way through the graph.
  std::pair<double, double> wanted_x(const Vertex& vertex, bool by_above, bool by_below) const {
    double sum = 0, weight = 0;
    auto add = [&](const std::vector<uint32_t>& others) {
      const bool goes_on =
          std::any_of(others.begin(), others.end(), [&](uint32_t other) { return vertices_[other].is_bend; });
      for (uint32_t other : others) {
        // A bend follows its own edge, whose branches would draw it aside a little in every layer.
        if (vertex.is_bend && goes_on && !vertices_[other].is_bend) continue;
        const double share = importance(vertices_[other]);
        sum += share * vertices_[other].x;
        weight += share;
      }
    };
    if (by_above) add(vertex.above);
    if (by_below) add(vertex.below);
    if (weight == 0) return {vertex.x, 0.1};
    return {sum / weight, importance(vertex)};
  }

  // How hard a vertex pulls: boxes without inputs stand aside, long edges go around.
  double importance(const Vertex& vertex) const {
    if (vertex.is_bend) return 0.25;
    return inputs_[vertex.source].empty() ? 0.1 : 1;
  }

  // --- the result ---

  Layout2d finished() {
    Layout2d result;
    std::vector<double> tops(layers_.size()), heights(layers_.size(), 0);
    double left = 0, right = 0, y = 0;
    bool first = true;
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (uint32_t index : layers_[i]) {
        const Vertex& vertex = vertices_[index];
        if (!vertex.is_bend) heights[i] = std::max(heights[i], boxes_[vertex.source].height);
        const double half = width_of(vertex) / 2;
        left = first ? vertex.x - half : std::min(left, vertex.x - half);
        right = first ? vertex.x + half : std::max(right, vertex.x + half);
        first = false;
      }
      tops[i] = y;
      y += heights[i] + kLayerGap;
    }
    for (Vertex& vertex : vertices_) vertex.x -= left;
    result.width = right - left;
    result.height = layers_.empty() ? 0 : y - kLayerGap;
    result.centers.resize(boxes_.size());
    for (uint32_t i = 0; i < boxes_.size(); ++i)
      result.centers[i] = {vertices_[i].x, tops[vertices_[i].layer] + heights[vertices_[i].layer] / 2};

    auto top = [&](uint32_t index) -> Layout2d::Point {
      const Vertex& vertex = vertices_[index];
      if (vertex.is_bend) return {vertex.x, tops[vertex.layer]};
      return {vertex.x, result.centers[index].y - boxes_[index].height / 2};
    };
    auto bottom = [&](uint32_t index) -> Layout2d::Point {
      const Vertex& vertex = vertices_[index];
      if (vertex.is_bend) return {vertex.x, tops[vertex.layer] + heights[vertex.layer]};
      return {vertex.x, result.centers[index].y + boxes_[index].height / 2};
    };
    for (uint32_t i = 0; i < vertices_.size(); ++i) {
      const Vertex& vertex = vertices_[i];
      if (vertex.is_bend) result.lines.push_back({top(i), bottom(i), vertex.source});
      for (uint32_t below : vertex.below)
        result.lines.push_back({bottom(i), top(below), vertex.source, !vertices_[below].is_bend});
    }
    for (const Edge& edge : far_)
      result.lines.push_back({bottom(edge.from), top(edge.to), edge.from, true, true});
    return result;
  }

  std::span<const BoxSize> boxes_;
  std::span<const std::vector<uint32_t>> inputs_;
  std::vector<Vertex> vertices_;  // the boxes, then the bends
  std::vector<std::vector<uint32_t>> layers_;
  std::vector<Edge> far_;
};

}  // namespace

Layout2d lay_out(std::span<const BoxSize> boxes, std::span<const std::vector<uint32_t>> inputs) {
  return Drawing(boxes, inputs).run();
}

}  // namespace weft
